package cli

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

func TestListPrintsRuns(t *testing.T) {
	working := namedRun("fix", "AwaitingApproval", func(r *v1alpha1.Run) {
		r.Labels = map[string]string{"app": "fix"}
		r.Status.Conditions[0].Message = "It asks: \x1b[2J\u202edeploy?\nTwo lines"
		r.Status.Attempt = &v1alpha1.Attempt{Number: 2, Pod: "fix-2"}
		r.Status.Progress = &v1alpha1.RunProgress{
			Model: "gpt", Counts: v1alpha1.Counts{Steps: 4},
			Usage: v1alpha1.Usage{TotalTokens: 7375, Cost: "0.023625USD", Duration: "2m50s"},
		}
	})
	elsewhere := namedRun("pipeline", "Finished", func(r *v1alpha1.Run) {
		r.Namespace = "team-b"
		r.Spec.Agent, r.Spec.Workflow = "", "release"
	})
	for name, args := range map[string][]string{
		"list":                {"list"},
		"list-wide":           {"list", "-o", "wide"},
		"list-all-namespaces": {"list", "-A"},
		"list-name":           {"list", "-A", "-o", "name"},
		"list-json":           {"list", "-l", "app=fix", "-o", "json"},
		"list-none":           {"list", "-l", "app=other"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, working.DeepCopy(), elsewhere.DeepCopy())
			if code := s.run(t, args...); code != exitOK {
				t.Errorf("exit code %d", code)
			}
			if name != "list-json" && strings.ContainsAny(s.text(), "\x1b\u202e") {
				t.Error("control characters reach the terminal")
			}
			golden(t, name+".txt", s.text())
		})
	}
}

func TestPrintedAgesAreSinceCreation(t *testing.T) {
	s := newSession(t)
	if got := s.since(metav1.Time{}); got != "" {
		t.Errorf("the age of an object without a time is %q", got)
	}
	if got := s.since(metav1.NewTime(s.Now().Add(-90e9))); got != "90s" {
		t.Errorf("the age is %q", got)
	}
}
