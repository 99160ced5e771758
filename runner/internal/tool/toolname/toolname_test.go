package toolname

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOf(t *testing.T) {
	long := strings.Repeat("x", 80)
	cases := map[string]struct {
		toolset string
		tools   []string
		want    []string
	}{
		"as they are":                   {"github", []string{"get_issue", "list-prs"}, []string{"github__get_issue", "github__list-prs"}},
		"what names cannot have":        {"a.b", []string{"c.d/e f", "ä"}, []string{"a_b__c_d_e_f", "a_b___"}},
		"cut":                           {"t", []string{long}, []string{"t__" + long[:61]}},
		"two that mapping makes equal":  {"t", []string{"a.b", "a/b"}, []string{"t__a_b_d22b38e7", "t__a_b_a90f48ff"}},
		"one that needed no mapping":    {"t", []string{"a.b", "a_b"}, []string{"t__a_b_d22b38e7", "t__a_b"}},
		"two that cutting makes equal":  {"t", []string{long + "1", long + "2"}, []string{"t__" + long[:52] + "_", "t__" + long[:52] + "_"}},
		"nothing":                       {"t", nil, []string{}},
		"one that is empty at home too": {"t", []string{""}, []string{"t__"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Of(tc.toolset, tc.tools)
			for i, n := range got {
				if len(n) > Max || strings.HasSuffix(tc.want[i], "x_") && !strings.HasPrefix(n, tc.want[i]) {
					t.Errorf("a name is %q", n)
				}
				if strings.HasSuffix(tc.want[i], "x_") {
					got[i] = tc.want[i]
					continue
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestNamesDifferAndDoNotDependOnTheOrder(t *testing.T) {
	long := strings.Repeat("x", 80)
	tools := []string{"a.b", "a/b", "a_b", "A.b", long, long + "y", long + "z", "a b"}
	names := map[string]string{}
	for i, n := range Of("some.toolset-of-a-very-long-name-that-is-allowed", tools) {
		if other, taken := names[n]; taken {
			t.Errorf("%q and %q are both %s", other, tools[i], n)
		}
		names[n] = tools[i]
	}
	slices.Reverse(tools)
	for i, n := range Of("some.toolset-of-a-very-long-name-that-is-allowed", tools) {
		if names[n] != tools[i] {
			t.Errorf("%s is %q, and was %q in another order", n, tools[i], names[n])
		}
	}
}
