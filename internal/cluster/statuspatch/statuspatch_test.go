package statuspatch_test

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/statuspatch"
)

func TestDiff(t *testing.T) {
	base := v1alpha1.RunStatus{Target: &v1alpha1.RunTarget{Kind: "Agent", Name: "fixer"}, Failures: 1, Attempt: &v1alpha1.Attempt{Number: 1}}
	cases := map[string]struct {
		change func(*v1alpha1.RunStatus)
		want   string
	}{
		"nothing changed, nothing sent": {func(*v1alpha1.RunStatus) {}, ``},
		"only what changed is sent, behind what is demanded": {
			func(s *v1alpha1.RunStatus) { s.Failures = 2 },
			`[{"op":"test","path":"/status/attempt/number","value":1},{"op":"add","path":"/status/failures","value":2}]`,
		},
		"what is gone is removed": {
			func(s *v1alpha1.RunStatus) { s.Target = nil },
			`[{"op":"test","path":"/status/attempt/number","value":1},{"op":"remove","path":"/status/target","value":null}]`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := *base.DeepCopy()
			tc.change(&want)
			patch, err := statuspatch.Diff(base, want, statuspatch.Same("/status/attempt/number", 1))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if patch != nil {
				data, _ := patch.Data(nil)
				got = string(data)
			}
			if got != tc.want {
				t.Errorf("Diff() = %s, want %s", got, tc.want)
			}
		})
	}
}

// Conditions are patched type by type, so that those of other controllers survive.
func TestDiffOfConditions(t *testing.T) {
	list := func(conditions ...string) map[string]any {
		out := []any{}
		for _, c := range conditions {
			kind, status, _ := strings.Cut(c, "=")
			out = append(out, map[string]any{"type": kind, "status": status})
		}
		return map[string]any{"conditions": out}
	}
	cases := map[string]struct {
		had, want map[string]any
		ops       string
	}{
		"the same in another order": {list("B=1", "A=1"), list("A=1", "B=1"), ``},
		"one of them changed": {
			list("Other=1", "A=1"), list("A=2", "Other=1"),
			`[{"op":"test","path":"/status/conditions/1/type","value":"A"},{"op":"replace","path":"/status/conditions/1","value":{"status":"2","type":"A"}}]`,
		},
		"one is new": {
			list("Other=1"), list("A=1", "Other=1"),
			`[{"op":"add","path":"/status/conditions/-","value":{"status":"1","type":"A"}}]`,
		},
		"two go, the last one first": {
			list("A=1", "B=1", "C=1"), list("B=1"),
			`[{"op":"test","path":"/status/conditions/2/type","value":"C"},{"op":"remove","path":"/status/conditions/2","value":null},` +
				`{"op":"test","path":"/status/conditions/0/type","value":"A"},{"op":"remove","path":"/status/conditions/0","value":null}]`,
		},
		"there were none": {
			nil, list("A=1"),
			`[{"op":"test","path":"/status/conditions","value":null},{"op":"add","path":"/status/conditions","value":[{"status":"1","type":"A"}]}]`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			patch, err := statuspatch.Diff(tc.had, tc.want)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if patch != nil {
				data, _ := patch.Data(nil)
				got = string(data)
			}
			if got != tc.ops {
				t.Errorf("Diff() = %s, want %s", got, tc.ops)
			}
		})
	}
}
