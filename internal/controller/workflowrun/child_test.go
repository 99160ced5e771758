package workflowrun

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
)

func TestNamesOfChildren(t *testing.T) {
	long := strings.Repeat("a-run-with-a-long-name.", 3)[:62]
	review := v1alpha1.Node{Name: "review"}
	reviews := v1alpha1.Node{Name: "review", ForEach: &v1alpha1.ForEach{}}
	cases := map[string]struct {
		run    string
		node   v1alpha1.Node
		number int
		want   string
	}{
		"a node":                    {"x", review, 0, "x-review"},
		"an item":                   {"x", reviews, 12, "x-review-12"},
		"a long one is cut":         {long, review, 0, ""},
		"and cut items are several": {long, reviews, 1, ""},
	}
	seen := map[string]bool{}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			parent := gen.Run(func(r *v1alpha1.Run) { r.Name = tc.run })
			got := childName(parent, tc.node, tc.number)
			if tc.want != "" && got != tc.want || len(got) > children.MaxName || seen[got] {
				t.Errorf("nameOf() = %q (%d characters), want %q", got, len(got), tc.want)
			}
			seen[got] = true
			if spare := spareChildName(parent, childKey{tc.node.Name, tc.number}); spare == got || len(spare) > children.MaxName {
				t.Errorf("spareOf() = %q", spare)
			}
		})
	}
}

// Who has the files of another node has its claim; so has that node itself.
func TestNodesThatShareFilesHaveOneClaim(t *testing.T) {
	v := whole(t, `
nodes:
- {name: build, agent: worker, prompt: go}
- {name: test, agent: worker, prompt: go, workspace: {from: build}}
- {name: ship, agent: worker, prompt: go, workspace: {from: test}}
- {name: alone, agent: worker, prompt: go}
`)
	c := newCluster(v)
	for range 2 {
		c.step()
	}
	ends("x-build", 1)(c)
	c.step()
	ends("x-test", 1)(c)
	c.step()
	want := runnerpod.SharedVolumeClaimName(c.run, "build")
	for _, name := range []string{"x-build", "x-test", "x-ship"} {
		if got := c.child(name).Annotations[v1alpha1.AnnotationVolumeClaim]; got != want {
			t.Errorf("%s has the claim %q, want %q", name, got, want)
		}
	}
	if got := c.child("x-alone").Annotations[v1alpha1.AnnotationVolumeClaim]; got != "" {
		t.Errorf("x-alone has the claim %q", got)
	}
}

func TestRefusals(t *testing.T) {
	cases := map[string]struct {
		err    error
		reason string // empty: it is tried again
	}{
		"a quota is waited for":        {forbids("exceeded quota: compute"), v1alpha1.ReasonQuotaExceeded},
		"a denial fails the node":      {forbids("admission webhook denied the request"), v1alpha1.NodeReasonRefused},
		"so does what is invalid":      {apierrors.NewInvalid(schema.GroupKind{Kind: "Run"}, "x", field.ErrorList{field.Invalid(nil, 1, "too long")}), v1alpha1.NodeReasonRefused},
		"so do names that are taken":   {&children.NamesTakenError{}, v1alpha1.NodeReasonRefused},
		"a permission is waited for":   {forbids("cannot create resource \"runs\""), graph.ReasonQueued},
		"a server that is down is not": {context.DeadlineExceeded, ""},
		"nor one that is busy":         {apierrors.NewTooManyRequests("later", 1), ""},
		"nor a conflict":               {apierr.Changed("Run", "x"), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, known := refusalOf(tc.err); got.reason != tc.reason || known != (tc.reason != "") {
				t.Errorf("refusalOf() = %+v, %t, want %q", got, known, tc.reason)
			}
		})
	}
}

// The status of a Run stays small, however much it asks.
func TestRequestsFitTheStatus(t *testing.T) {
	text := "nodes:\n"
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		text += "- {name: " + name + ", approval: {message: \"" + strings.Repeat("Is it good? ", 200) + "\"}}\n"
	}
	c := newCluster(whole(t, text))
	for range 3 {
		c.step()
	}
	size := 0
	for _, p := range c.run.Status.Progress.Pending {
		size += len(p.Question)
	}
	if n := len(c.run.Status.Progress.Pending); size > 6<<10 || n < 5 || n > 8 {
		t.Errorf("%d requests have %d bytes", n, size)
	}
}

// One look at a Run with 490 children is arithmetic.
func BenchmarkDecide(b *testing.B) {
	t := &testing.T{}
	v := whole(t, `
input: {fields: [{name: files, type: List}]}
nodes:
- {name: look, agent: worker, prompt: "look at ${{ item }}", onFailure: Continue, forEach: {items: input.files, maxParallel: 490}}
- {name: sum, agent: writer, prompt: "${{ nodes.look.counts.succeeded }}"}
`)
	list := make([]int, 490)
	raw, _ := json.Marshal(map[string]any{"files": list})
	c := newCluster(v, func(r *v1alpha1.Run) { r.Spec.Input = rawOf(raw) })
	for range 10 {
		c.step()
	}
	for name := range c.children {
		if name != "x-look-7" {
			ends(name, 1)(c)
		}
	}
	c.step()
	s := c.observed()
	b.ResetTimer()
	for b.Loop() {
		decide(s)
	}
}

// each is a Run of 490 items of which all but one have ended, with outputs of so
// many bytes, and a node after them with a prompt.
func each(t *testing.T, size int, prompt string) *cluster {
	t.Helper()
	v := whole(t, `
input: {fields: [{name: files, type: List}]}
nodes:
- {name: look, agent: worker, prompt: "look at ${{ item }}", onFailure: Continue, forEach: {items: input.files, maxParallel: 490}}
- {name: sum, agent: writer, prompt: "`+prompt+`"}
`)
	raw, _ := json.Marshal(map[string]any{"files": make([]int, 490)})
	c := newCluster(v, func(r *v1alpha1.Run) { r.Spec.Input = rawOf(raw) })
	for range 10 {
		c.step()
	}
	filler := strings.Repeat("x", size)
	for name := range c.children {
		if name != "x-look-7" {
			ends(name, 1, func(p *v1alpha1.RunProgress) {
				p.Result.Text, p.Result.Output = filler, `{"n":1,"x":"`+filler+`"}`
			})(c)
		}
	}
	c.step()
	return c
}

// allocated is how many bytes one look takes.
func allocated(c *cluster) uint64 {
	const looks = 5
	s := c.observed()
	decide(s)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range looks {
		decide(s)
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / looks
}

// What children said is not copied before it may be read, and then a few times,
// however many children there are.
func TestLookingIsNoCopying(t *testing.T) {
	if testing.Short() {
		t.Skip("measures memory, so it runs without the race detector")
	}
	const size = 20_000
	for _, prompt := range []string{"${{ nodes.look.counts.succeeded }}", "${{ size(nodes.look.?output.orValue([])) }}"} {
		small, large := each(t, 10, prompt), each(t, size, prompt)
		if one, other := allocated(small), allocated(large); other > one+one/4 || other > 2<<20 {
			t.Errorf("%s: a look takes %d bytes, and %d where children said much", prompt, one, other)
		}
		for _, c := range []*cluster{small, large} {
			ends("x-look-7", 1)(c)
		}
		if one, other := allocated(small), allocated(large); other > one+8*490*size {
			t.Errorf("%s: to read %d bytes takes %d, and %d without them", prompt, 490*size, other, one)
		}
	}
}
