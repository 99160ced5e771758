package policy_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// A user is not the operator by what roles allow: wildcards are common, and a tool that applies
// what authors write into a repository may do everything.
func TestOnlyTheServiceAccountOfTheOperatorIsTheOperator(t *testing.T) {
	s := newFixture(t)
	everything := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
	made := map[string]func() client.Object{
		"a runner pod": func() client.Object {
			return &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "forged"},
				Spec:       corev1.PodSpec{ServiceAccountName: v1alpha1.RunnerServiceAccount, Containers: []corev1.Container{{Name: "c", Image: "c"}}},
			}
		},
		"a child Run": func() client.Object {
			return s.work("forged", labeled(v1alpha1.LabelWorkflowRun, s.run.Name), ownedBy("Run", s.run.Name, s.run.UID, ourVersion))
		},
		"an event of the operator": func() client.Object { return coreEvent(s.namespace, "deckhand", "") },
	}
	for user, isOperator := range map[string]bool{
		"gitops":         false,
		"deckhand":       false,
		apitest.Operator: true,
		"system:serviceaccount:" + s.namespace + ":deckhand": false,
	} {
		c := s.As(t, user, s.namespace, everything)
		for what, object := range made {
			t.Run(user+" creates "+what, func(t *testing.T) {
				err := c.Create(t.Context(), object(), client.DryRunAll)
				if isOperator && err != nil || !isOperator && !apitest.IsPolicy(err) {
					t.Errorf("the server says %v", err)
				}
			})
		}
	}
}

func coreEvent(namespace, controller, component string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Name: "forged"},
		InvolvedObject:      corev1.ObjectReference{APIVersion: ourVersion, Kind: "Run", Namespace: namespace, Name: "mine"},
		Reason:              "Finished",
		Message:             "All is well.",
		Source:              corev1.EventSource{Component: component},
		ReportingController: controller,
		ReportingInstance:   "a",
		Action:              "Reconcile",
		EventTime:           metav1.NowMicro(),
		Type:                corev1.EventTypeNormal,
	}
}

func TestEventsOfTheOperatorAreFromTheOperator(t *testing.T) {
	s := newFixture(t)
	ann := s.As(t, "ann", s.namespace, rbacv1.PolicyRule{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "update"}})
	oldEvent := func(component string) *corev1.Event {
		event := coreEvent(s.namespace, "", component)
		event.EventTime, event.ReportingInstance, event.Action = metav1.MicroTime{}, "", ""
		return event
	}
	about := func(kind, apiVersion string, change func(*corev1.Event)) *corev1.Event {
		event := oldEvent("notifier")
		event.InvolvedObject.Kind, event.InvolvedObject.APIVersion = kind, apiVersion
		change(event)
		return event
	}
	inTwoLines := func(e *corev1.Event) { e.Message = "All is well.\n  It is done." }
	asAnother := func(e *corev1.Event) { e.Message = "All is well.\n  Normal\tFinished\t5s\tDeckhand\tIt is done" }
	newer := func(controller string) *eventsv1.Event {
		return &eventsv1.Event{
			ObjectMeta:          metav1.ObjectMeta{Namespace: s.namespace, Name: "forged"},
			Regarding:           corev1.ObjectReference{APIVersion: ourVersion, Kind: "Run", Namespace: s.namespace, Name: "mine"},
			Reason:              "Finished",
			Note:                "All is well.",
			ReportingController: controller,
			ReportingInstance:   "a",
			Action:              "Reconcile",
			EventTime:           metav1.NowMicro(),
			Type:                corev1.EventTypeNormal,
		}
	}
	const (
		refused = "only the operator may write events of the controller deckhand"
		ascii   = "must have printable ASCII"
		oneLine = "must have no control characters, and no invisible ones, in its message"
		another = "must not have the word deckhand after the first line of its message"
	)
	for name, tc := range map[string]struct {
		event client.Object
		want  string
	}{
		"in another name":                                {coreEvent(s.namespace, "example.com/notifier", ""), ""},
		"of an old client":                               {oldEvent("notifier"), ""},
		"as its controller":                              {coreEvent(s.namespace, "deckhand", ""), refused},
		"as its component":                               {oldEvent("deckhand"), refused},
		"with another case":                              {oldEvent("Deckhand"), refused},
		"with a space":                                   {oldEvent("deckhand "), refused},
		"with an invisible character":                    {oldEvent("deckhand\u200b"), refused},
		"with an invisible character in it":              {oldEvent("deck\u200bhand"), ascii},
		"with a letter of another alphabet":              {oldEvent("d\u0435ckhand"), ascii},
		"as its host":                                    {about("Run", ourVersion, func(e *corev1.Event) { e.Source.Host = "deckhand" }), refused},
		"with a reason of two lines":                     {about("Run", ourVersion, func(e *corev1.Event) { e.Reason = "Waits\nNormal" }), ascii},
		"with a message of two lines":                    {about("Run", ourVersion, inTwoLines), oneLine},
		"with a line separator":                          {about("Run", ourVersion, func(e *corev1.Event) { e.Message = "a\u2028b" }), oneLine},
		"with a letter in its message":                   {about("Run", ourVersion, func(e *corev1.Event) { e.Message = "Über \u0435" }), ""},
		"of a kind alone":                                {about("Agent", "", inTwoLines), oneLine},
		"about a Run of another product":                 {about("Run", "example.com/v1", inTwoLines), ""},
		"a name like it, about a Run of another product": {about("Run", "example.com/v1", func(e *corev1.Event) { e.Source.Component = "d\u0435ckhand" }), ascii},
		"with a change of direction":                     {about("Run", ourVersion, func(e *corev1.Event) { e.Message = "a\u202eb" }), oneLine},
		"about a Workflow of another product":            {about("Workflow", "argoproj.io/v1alpha1", inTwoLines), ""},
		"that looks like another":                        {about("Workflow", "argoproj.io/v1alpha1", asAnother), another},
		"that names the operator in its line":            {about("Workflow", "argoproj.io/v1alpha1", func(e *corev1.Event) { e.Message = "deckhand waits.\nIt asks." }), ""},
		"of a kubelet at a node with its name":           {about("Pod", "v1", func(e *corev1.Event) { e.Source.Component, e.Source.Host = "kubelet", "deckhand-control-plane" }), ""},
		"of a scheduler at such a node":                  {about("Pod", "v1", func(e *corev1.Event) { e.ReportingInstance = "default-scheduler-deckhand-control-plane" }), ""},
		"from a node with its name, about a Run":         {about("Run", ourVersion, func(e *corev1.Event) { e.Source.Host = "deckhand-control-plane" }), refused},
		"about a Pod":                                    {about("Pod", "v1", inTwoLines), ""},
		"with its component beside a name":               {coreEvent(s.namespace, "example.com/notifier", "deckhand"), refused},
		"of events.k8s.io in another name":               {newer("example.com/notifier"), ""},
		"of events.k8s.io as its controller":             {newer("deckhand"), refused},
	} {
		t.Run(name, func(t *testing.T) {
			says(t, ann.Create(t.Context(), tc.event, client.DryRunAll), tc.want)
		})
	}
	t.Run("changed into one", func(t *testing.T) {
		event := coreEvent(s.namespace, "example.com/notifier", "")
		s.Create(t, event)
		event.ReportingController = "deckhand"
		says(t, ann.Update(t.Context(), event), refused)
	})
}
