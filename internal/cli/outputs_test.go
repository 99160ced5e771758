package cli

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/gen"
)

func TestCommandsPrintJSONAndYAML(t *testing.T) {
	run := runWithRequests()
	pod := runnerPod(run, "1", corev1.PodRunning)
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "e"}, InvolvedObject: corev1.ObjectReference{UID: run.UID}, Reason: "Asked"}
	_, objects := released()
	objects = append(objects, run, pod, event)
	for line, want := range map[string][]string{
		"version":         {"version: v1.2.3", "platform: "},
		"tree ship":       {"name: workflow/release", "run: ship-test-1-helper", "state: Finished"},
		"pending":         {"id: s2c1", "run: fix", "namespace: team-a"},
		"pending fix":     {"id: s2c1", "id: " + callID},
		"pending ship":    {"[]"},
		"why fix":         {"kind: Run", "name: fix-1", "reason: Asked"},
		"why agent/fixer": {"kind: Agent", "name: fixer"},
	} {
		s := newSession(t, objects...)
		s.openLog = (&fakeLogs{}).open
		for _, format := range []string{"yaml", "json"} {
			if code := s.run(t, append(strings.Fields(line), "-o", format)...); code != exitOK || s.err.Len() > 0 && !strings.HasPrefix(line, "pending") {
				t.Fatalf("%s: exit code %d: %s", line, code, s.err.String())
			}
			text := asYAML(t, s.out.Bytes())
			for _, w := range want {
				if !strings.Contains(text, w) {
					t.Errorf("%s -o %s: no %q in %s", line, format, w, text)
				}
			}
		}
		if code := s.run(t, append(strings.Fields(line), "-o", "xml")...); code != exitUsage {
			t.Errorf("%s: exit code %d", line, code)
		}
	}
}

// asYAML returns JSON or YAML as YAML.
func asYAML(t *testing.T, text []byte) string {
	t.Helper()
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	out, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestTreeAsJSON(t *testing.T) {
	_, objects := released()
	s := newSession(t, objects...)
	at := metav1.NewTime(gen.Noon)
	s.edit(t, "ship", func(run *v1alpha1.Run) {
		run.CreationTimestamp = at
		run.Status.Nodes = []v1alpha1.NodeStatus{
			{Name: "build", State: "Succeeded"},
			{Name: "gate", State: "Running", Reason: v1alpha1.ReasonAwaitingApproval, StartedAt: &at},
		}
	})
	if code := s.run(t, "tree", "ship", "-o", "json"); code != exitOK {
		t.Fatal(s.text())
	}
	golden(t, "tree-json.txt", s.text())
}
