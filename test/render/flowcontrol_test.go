package render_test

import (
	"slices"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
)

func TestFlowControlSeparatesRunnersFromTheOperator(t *testing.T) {
	if levels := all[flowcontrolv1.PriorityLevelConfiguration](t, template(t, "prod", ""), "PriorityLevelConfiguration"); len(levels) > 0 {
		t.Errorf("by default there are %d priority levels, want 0", len(levels))
	}
	for values, namespaces := range map[string][]string{
		"flowControl: {enabled: true, runnerShares: 7}":                                   {"*"},
		"{flowControl: {enabled: true, runnerShares: 7}, watchNamespaces: [blue, green]}": {"blue", "green"},
	} {
		objects := template(t, "prod", values)
		levels := all[flowcontrolv1.PriorityLevelConfiguration](t, objects, "PriorityLevelConfiguration")
		if len(levels) != 1 || *levels[0].Spec.Limited.NominalConcurrencyShares != 7 {
			t.Fatalf("%s: priority levels %+v", values, levels)
		}
		schemas := map[string]flowcontrolv1.FlowSchema{}
		for _, s := range all[flowcontrolv1.FlowSchema](t, objects, "FlowSchema") {
			schemas[s.Name] = s
		}
		runners, manager := schemas["prod-deckhand-runners"], schemas["prod-deckhand-manager"]
		if runners.Spec.PriorityLevelConfiguration.Name != levels[0].Name || !slices.Equal(runners.Spec.Rules[0].ResourceRules[0].Namespaces, namespaces) {
			t.Errorf("%s: runners have %+v", values, runners.Spec)
		}
		subject := manager.Spec.Rules[0].Subjects[0].ServiceAccount
		if subject == nil || subject.Name != "prod-deckhand" || subject.Namespace != "deckhand-system" {
			t.Errorf("%s: the operator is %+v", values, subject)
		}
		if manager.Spec.MatchingPrecedence >= runners.Spec.MatchingPrecedence {
			t.Errorf("%s: the FlowSchema of runners is matched before that of the operator, which patches the status of Runs too", values)
		}
	}
}
