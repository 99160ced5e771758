package policy_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/apitest"
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
	const refused = "only the operator may write events of the controller deckhand"
	for name, tc := range map[string]struct {
		event client.Object
		want  string
	}{
		"in another name":                    {coreEvent(s.namespace, "example.com/notifier", ""), ""},
		"of an old client":                   {oldEvent("notifier"), ""},
		"as its controller":                  {coreEvent(s.namespace, "deckhand", ""), refused},
		"as its component":                   {oldEvent("deckhand"), refused},
		"with another case":                  {oldEvent("Deckhand"), refused},
		"with a space":                       {oldEvent("deckhand "), refused},
		"with an invisible character":        {oldEvent("deckhand\u200b"), refused},
		"with its component beside a name":   {coreEvent(s.namespace, "example.com/notifier", "deckhand"), refused},
		"of events.k8s.io in another name":   {newer("example.com/notifier"), ""},
		"of events.k8s.io as its controller": {newer("deckhand"), refused},
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
