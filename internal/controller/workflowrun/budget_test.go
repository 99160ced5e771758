package workflowrun

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/children"
)

func rawOf(data []byte) *runtime.RawExtension { return &runtime.RawExtension{Raw: data} }

func TestPartOfFinally(t *testing.T) {
	five := v1alpha1.Duration("5m")
	said, much := v1alpha1.Tokens("70"), v1alpha1.Tokens("5000")
	cases := map[string]struct {
		whole children.Amounts
		said  *v1alpha1.FinallyLimits
		want  children.Amounts
		nodes []v1alpha1.Node
	}{
		"without limits ten minutes":          {whole: children.Amounts{}, want: children.Amounts{children.Duration: 600}},
		"and as much for each of several":     {whole: children.Amounts{}, want: children.Amounts{children.Duration: 1800}, nodes: make([]v1alpha1.Node, 3)},
		"a tenth of what is limited":          {whole: children.Amounts{100, 1000, 50, 7200}, want: children.Amounts{10, 100, 5, 600}},
		"half of a short duration at most":    {whole: children.Amounts{children.Duration: 300}, want: children.Amounts{children.Duration: 150}},
		"something of the least":              {whole: children.Amounts{1, 1, 1, 1}, want: children.Amounts{1, 1, 1, 1}},
		"no more than the whole":              {whole: children.Amounts{children.Tokens: 1000}, said: &v1alpha1.FinallyLimits{Tokens: &much}, want: children.Amounts{children.Tokens: 1000, children.Duration: 600}},
		"what is said, and a tenth of others": {whole: children.Amounts{100, 1000, 0, 0}, said: &v1alpha1.FinallyLimits{Tokens: &said, Duration: &five}, want: children.Amounts{10, 70, 0, 300}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := forFinally(tc.whole, v1alpha1.WorkflowSpec{FinallyLimits: tc.said, Finally: tc.nodes}); got != tc.want {
				t.Errorf("forFinally() = %v, want %v", got, tc.want)
			}
		})
	}
}

// None of finally keeps another from running by taking all the time there is.
func TestNodesOfFinallyRunBesideEachOther(t *testing.T) {
	c := newCluster(whole(t, `
nodes: [{name: a, agent: worker, prompt: x}]
finally:
- {name: tell, agent: writer, prompt: x}
- {name: clean, agent: writer, prompt: x}
`))
	c.step()
	c.step()
	ends("x-a", 1)(c)
	c.step()
	for _, name := range []string{"x-tell", "x-clean"} {
		if l := c.child(name).Spec.Limits; l == nil || l.Duration == nil || *l.Duration != "600s" {
			t.Errorf("%s has %+v", name, l)
		}
	}
}

// A Run may lower the limits of its Workflow, and its children's with them.
func TestRunLowersTheLimitsOfItsWorkflow(t *testing.T) {
	tokens := v1alpha1.Tokens("50")
	c := newCluster(whole(t, "limits: {tokens: 1000}\n"+pipeline), func(r *v1alpha1.Run) { r.Spec.Limits = &v1alpha1.Limits{Tokens: &tokens} })
	c.step()
	c.step()
	if l := c.child("x-a").Spec.Limits; l == nil || *l.Tokens != "50" {
		t.Errorf("the child has %+v", l)
	}
}
