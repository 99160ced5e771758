package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
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
			if code := s.run(t, append(strings.Fields(line), "-o", format)...); code != exit.OK || s.err.Len() > 0 && !strings.HasPrefix(line, "pending") {
				t.Fatalf("%s: exit code %d: %s", line, code, s.err.String())
			}
			text := asYAML(t, s.out.Bytes())
			for _, w := range want {
				if !strings.Contains(text, w) {
					t.Errorf("%s -o %s: no %q in %s", line, format, w, text)
				}
			}
		}
		if code := s.run(t, append(strings.Fields(line), "-o", "xml")...); code != exit.Usage {
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
	if code := s.run(t, "tree", "ship", "-o", "json"); code != exit.OK {
		t.Fatal(s.text())
	}
	golden(t, "tree-json.txt", s.text())
}

// A compromised runner writes the questions of its own Run.
func TestJSONAndYAMLEscapeWhatATerminalObeys(t *testing.T) {
	const question = "\u009b31m \u202ednuor\u2066 \x1b[2J \x7f \u2028 \U000e0041 <a> \u2714\ufe0f 東京\nline: two\r\n"
	run := runWithRequests()
	run.Status.Progress.Pending[1].Question = question
	for _, command := range []string{"pending", "pending fix", "why fix", "list"} {
		for _, format := range []string{outputJSON, outputYAML} {
			s := newSession(t, run.DeepCopy())
			if code := s.run(t, append(strings.Fields(command), "-o", format)...); code != exit.OK {
				t.Fatalf("%s: exit code %d: %s", command, code, s.text())
			}
			text := s.out.String()
			if safe := untrusted.Text(text); strings.ReplaceAll(text, "\ufe0f", "") != safe {
				t.Errorf("%s -o %s: a terminal obeys %+q", command, format, text)
			}
			var value any
			read := map[string]func([]byte) error{
				outputJSON: func(data []byte) error { return json.Unmarshal(data, &value) },
				outputYAML: func(data []byte) error { return yaml.Unmarshal(data, &value) },
			}[format]
			if err := read([]byte(text)); err != nil {
				t.Fatalf("%s -o %s: %v: %s", command, format, err, text)
			}
			if !hasText(value, question) {
				t.Errorf("%s -o %s: the question is another: %s", command, format, text)
			}
		}
	}
}

// hasText reports whether a text is anywhere in a value.
func hasText(value any, text string) bool {
	switch v := value.(type) {
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), func(of any) bool { return hasText(of, text) })
	case []any:
		return slices.ContainsFunc(v, func(of any) bool { return hasText(of, text) })
	}
	return value == text
}

func TestYAMLKeepsEveryText(t *testing.T) {
	for _, r := range "\x00\t\n\r\x1b\x7f\u0080\u0085\u009b\u00a0\u00ad\u061c\u200b\u200e\u2028\u2029\u202e\u2066\u2800\u3164\ue000\ufe00\ufe0f\ufeff\ufffd\ufffe\U0001f600\U000e0041\U000e0100" {
		for _, form := range []string{"%c", "a%cb", "%c x", "x %c", "a\n%c\n", "'%c", `"%c\`, "- %c: #", "%c%[1]c"} {
			want := map[string]string{"text": fmt.Sprintf(form, r), fmt.Sprintf(form, r): "key"}
			var out strings.Builder
			if err := printValue(&out, outputYAML, want); err != nil {
				t.Errorf("%+q: %v", want, err)
			}
			var got map[string]string
			if err := yaml.Unmarshal([]byte(out.String()), &got); err != nil || !maps.Equal(got, want) {
				t.Errorf("%v, %+q, want %+q: %+q", err, got, want, out.String())
			}
			if safe := untrusted.Text(out.String()); strings.ReplaceAll(out.String(), "\ufe0f", "") != safe {
				t.Errorf("a terminal obeys %+q", out.String())
			}
		}
	}
}

// What needs no escape is as kubectl prints it.
func TestYAMLWithAnEscapeIsInTheSameStyle(t *testing.T) {
	type list struct {
		Of   []map[string]string `json:"of"`
		Text string              `json:"text"`
		Name string              `json:"name"`
	}
	value := list{Of: []map[string]string{{"a": "1", "b": "two\nlines\n"}}, Text: "a\u202eb", Name: "true"}
	const want = "name: \"true\"\nof:\n- a: \"1\"\n  b: |\n    two\n    lines\ntext: \"a\\u202eb\"\n"
	var out strings.Builder
	if err := printValue(&out, outputYAML, value); err != nil || out.String() != want {
		t.Errorf("%v: %s", err, out.String())
	}
}
