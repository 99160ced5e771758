package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of these kinds.
var GroupVersion = schema.GroupVersion{Group: "deckhand.dev", Version: "v1alpha1"}

var schemeBuilder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Model{}, &ModelList{},
		&Toolset{}, &ToolsetList{},
		&Agent{}, &AgentList{},
		&Run{}, &RunList{},
		&Decision{}, &DecisionList{},
		&Workflow{}, &WorkflowList{},
		&Schedule{}, &ScheduleList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
})

// AddToScheme teaches a scheme these kinds.
var AddToScheme = schemeBuilder.AddToScheme
