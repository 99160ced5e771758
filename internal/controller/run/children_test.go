package run

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/shared/inputtext"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// stateWithRequests is the observed state of a Run whose runner asks for child Runs.
func stateWithRequests(t *testing.T, o snapshot.Objects, pending ...v1alpha1.PendingRequest) state {
	t.Helper()
	c := newClusterOf(t, gen.Run(), gen.Agent(delegatesTo()), o)
	c.begin()
	starts(1)(c)
	reports(1, asksFor(pending...))(c)
	return c.observed()
}

func TestWhyNoChildRunIsMade(t *testing.T) {
	deep := func(n int) func(*state) {
		return func(s *state) { s.ancestors = make([]children.Ancestor, n) }
	}
	other := func(mods ...func(*v1alpha1.Run)) func(*state) {
		return func(s *state) {
			child := childOf(*s, s.delegations(s.progress())[0], nil)
			for _, mod := range mods {
				mod(child)
			}
			s.children = append(s.children, *child)
		}
	}
	depth := func(n int32) func(*state) {
		return func(s *state) { s.run.Spec.Limits = &v1alpha1.Limits{Depth: &n} }
	}
	said := func(args string) v1alpha1.PendingRequest {
		return review("s2c1", func(p *v1alpha1.PendingRequest) { p.Args = args })
	}
	cases := map[string]struct {
		ask   v1alpha1.PendingRequest
		world []func(*state)
		want  string
	}{
		"nothing is in the way":           {said(`{"prompt":"x"}`), nil, ""},
		"nor as deep as it may be":        {said(`{"prompt":"x"}`), []func(*state){deep(2)}, ""},
		"it is one deeper":                {said(`{"prompt":"x"}`), []func(*state){deep(3)}, "Delegation is limited to a depth of 3 (limits.depth), and this Run has depth 3"},
		"not at all":                      {said(`{"prompt":"x"}`), []func(*state){depth(0)}, "a depth of 0 (limits.depth)"},
		"deeper than anything may be":     {said(`{"prompt":"x"}`), []func(*state){deep(5)}, "and this Run has depth 5"},
		"an agent that is not listed":     {review("s2c1", func(p *v1alpha1.PendingRequest) { p.Agent = "fixer" }), nil, "Agent fixer is not listed in spec.tools"},
		"no JSON":                         {said(`{`), nil, "is no JSON object"},
		"no object":                       {said(`null`), nil, "is no JSON object"},
		"no prompt":                       {said(`{}`), nil, "Say in prompt"},
		"a prompt that is no text":        {said(`{"prompt":7}`), nil, "Say in prompt"},
		"a prompt that says nothing":      {said(`{"prompt":" \n\t"}`), nil, "Say in prompt"},
		"arguments that were cut":         {review("s2c1", func(p *v1alpha1.PendingRequest) { p.ArgsTruncated = true }), nil, "more than 4096 bytes"},
		"more than there may be":          {said(`{"prompt":"x"}`), []func(*state){func(s *state) { s.run.Status.Internal.Delegated = make([]string, 100) }}, "asked for 100 Runs already"},
		"nothing is left":                 {said(`{"prompt":"x"}`), []func(*state){func(s *state) { s.run.Status.Progress.Usage.TotalTokens = 2_000_000 }}, "Nothing is left"},
		"one is there":                    {said(`{"prompt":"x"}`), []func(*state){other()}, ""},
		"one is there for something else": {said(`{"prompt":"x"}`), []func(*state){other(func(r *v1alpha1.Run) { r.Annotations[v1alpha1.AnnotationDigest] = "b" })}, "An earlier attempt asked for something else under the id of this call, and Run x-s2c1 is doing that"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := stateWithRequests(t, withReviewer(gen.Objects()), tc.ask)
			for _, mod := range tc.world {
				mod(&s)
			}
			got := delegationProblem(s, s.delegations(s.progress())[0])
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("refusal() = %q, want %q", got, tc.want)
			}
			if _, makes := delegating(s); makes != (got == "" && len(s.children) == 0) {
				t.Errorf("a child Run is made: %v", makes)
			}
		})
	}
}

func TestTheRunThatARequestAsksFor(t *testing.T) {
	o := withReviewer(gen.Objects())
	s := stateWithRequests(t, o, review("s2c1", func(p *v1alpha1.PendingRequest) {
		p.Args = `{"prompt":"Review ${{ input.secret }} and $${{ x }}."}`
	}))
	s.run.Labels = map[string]string{
		"team": "harbor", "kueue.x-k8s.io/queue-name": "cheap", "kueue.x-k8s.io/priority-class": "low",
		"app.kubernetes.io/instance": "apps", "argocd.argoproj.io/instance": "apps", "deckhand.dev/workflow-node": "lint", "kustomize.toolkit.fluxcd.io/name": "apps", "velero.io/restore-name": "x",
	}
	s.run.Spec.User = "ann"
	p, makes := delegating(s)
	if !makes {
		t.Fatal("none is made")
	}
	labels := map[string]string{
		"team": "harbor", "kueue.x-k8s.io/queue-name": "cheap", "kueue.x-k8s.io/priority-class": "low",
		v1alpha1.LabelParentRun: "x", v1alpha1.LabelRequest: "s2c1",
	}
	if diff := cmp.Diff(labels, p.child.Labels); diff != "" {
		t.Errorf("labels: -want +got:\n%s", diff)
	}
	if !isChild(p.child, s.run) || p.child.Annotations[v1alpha1.AnnotationDigest] != strings.Repeat("a", 64) || p.child.Name != "x-s2c1" {
		t.Errorf("it is %+v", p.child.ObjectMeta)
	}
	depth, tokens := int32(3), v1alpha1.Tokens("500000")
	want := v1alpha1.RunSpec{Agent: "reviewer", Prompt: p.child.Spec.Prompt, User: "ann", Limits: &v1alpha1.Limits{Depth: &depth, Tokens: &tokens}}
	if diff := cmp.Diff(want, p.child.Spec); diff != "" {
		t.Errorf("spec: -want +got:\n%s", diff)
	}
	if got, err := inputtext.Bind(p.child.Spec.Prompt, nil, []byte(`{"secret":"pasted"}`)); err != nil || got != "Review ${{ input.secret }} and $${{ x }}." {
		t.Errorf("its agent reads %q, %v", got, err)
	}
}

// An agent with an input schema is given values, which its own prompt is made of.
func TestAChildRunIsGivenInput(t *testing.T) {
	o := withReviewer(gen.Objects())
	o.Agents["reviewer"].Spec.Input = &v1alpha1.Input{Fields: []v1alpha1.Field{{Name: "file"}}}
	s := stateWithRequests(t, o, review("s2c1", func(p *v1alpha1.PendingRequest) { p.Args = `{"file":"a.go"}` }))
	p, _ := delegating(s)
	if p.child == nil || p.child.Spec.Prompt != "" || !bytes.Equal(p.child.Spec.Input.Raw, []byte(`{"file":"a.go"}`)) {
		t.Errorf("it is given %+v", p.child)
	}
}

// Whatever a runner calls its requests, their Runs have names and labels that the
// cluster takes, and no two the same.
func TestNamesOfChildRuns(t *testing.T) {
	long := gen.Run(func(r *v1alpha1.Run) { r.Name = strings.Repeat("long-", 12) + "run" })
	ids := []string{"s2c1", "s2c1.s1c1", "S2C1", "s2c1.", "-", "", "a/b", "ä", "..", strings.Repeat("s1c1.", 15) + "s1c1", strings.Repeat("x", 80), "x\n"}
	for _, run := range []*v1alpha1.Run{gen.Run(), long} {
		seen := map[string]string{}
		for _, id := range ids {
			for _, name := range childNames(run, id) {
				if errs := validation.IsDNS1123Label(name); len(errs) > 0 || len(name) > 63 {
					t.Errorf("%q has the name %q: %v", id, name, errs)
				}
				if by, taken := seen[name]; taken {
					t.Errorf("%q and %q are both called %s", by, id, name)
				}
				seen[name] = id
			}
			if errs := validation.IsValidLabelValue(requestLabel(id)); len(errs) > 0 || requestLabel(id) == "" {
				t.Errorf("%q has the label %q: %v", id, requestLabel(id), errs)
			}
		}
	}
	if got := childNames(gen.Run(), "s2c1")[0]; got != "x-s2c1" {
		t.Errorf("the Run of s2c1 is called %s", got)
	}
}

// What was made for one request does not pass for what was made for another, where
// their hashes begin alike.
func TestARequestIsNotTakenForAnother(t *testing.T) {
	const one, other = "s8c25", "s288c14"
	s := stateWithRequests(t, withReviewer(gen.Objects()), review(one), review(other))
	s.children = []v1alpha1.Run{*childOf(s, s.delegations(s.progress())[0], nil)}
	s.run.Status.Internal.Delegated = childMarks(s, plan{})
	if d := s.delegations(s.progress())[1]; d.gone {
		t.Errorf("the Run of %s passes for deleted, because there is one of %s", other, one)
	}
	s.children = nil
	if d := s.delegations(s.progress())[0]; !d.gone {
		t.Errorf("nobody knows that there was a Run of %s", one)
	}
}

func TestWantedBy(t *testing.T) {
	agent := func(tokens v1alpha1.Tokens) *v1alpha1.Agent {
		return gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Limits.Tokens = &tokens })
	}
	cases := map[string]struct {
		agent       *v1alpha1.Agent
		limit, want int64
	}{
		"no limit of the Run":                      {agent("50"), 0, 0},
		"what its Agent says":                      {agent("50"), 100, 50},
		"no more than the limit of the Run":        {agent("500"), 100, 100},
		"a quarter if its Agent has no limit":      {gen.Agent(), 100, 25},
		"a quarter if its Agent does not exist":    {nil, 100, 25},
		"a limit that cannot be cut into quarters": {gen.Agent(), 2, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := wantedBy(tc.agent, children.Amounts{children.Tokens: tc.limit})[children.Tokens]; got != tc.want {
				t.Errorf("wantedBy() = %d, want %d", got, tc.want)
			}
		})
	}
}

// Where too little is left a child Run waits for the others that may give some
// back, and begins with that when there are none.
func TestWhoWaitsForABudget(t *testing.T) {
	cases := map[string]struct {
		used   int64
		others bool
		want   reservation
	}{
		"there is enough":               {0, true, reserved},
		"too little, and nobody else":   {1_900_000, false, reserved},
		"too little, and others":        {1_900_000, true, mustWait},
		"nothing, and nobody else":      {2_000_000, false, limitExhausted},
		"nothing, and others, who wait": {2_000_000, true, mustWait},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := stateWithRequests(t, withReviewer(gen.Objects()), review("s2c1"))
			s.run.Status.Progress.Usage.TotalTokens = tc.used
			if tc.others {
				s.children = append(s.children, *gen.Run(func(r *v1alpha1.Run) {
					r.Name, r.Spec.Limits = "another", childLimits(s, s.budget(), children.Amounts{children.Tokens: 1000})
				}))
			}
			if _, _, got := reserve(s, s.delegations(s.progress())[0]); got != tc.want {
				t.Errorf("reserve() = %d, want %d", got, tc.want)
			}
		})
	}
}

// What a child Run used counts once: in the usage of its caller once its runner has read the
// result, before that apart, also if the runner does not ask for the result (any more).
func TestAFinishedChildRunIsChargedOnce(t *testing.T) {
	tokens := func(n int64) *int64 { return &n }
	cases := map[string]struct {
		asked   bool
		charged *int64
		want    int64
	}{
		"the runner waits for its result":                {true, nil, 1500},
		"the same, and has read others":                  {true, tokens(0), 1500},
		"its result is read":                             {false, tokens(500), 1000},
		"its call was cancelled, or is not resumed yet":  {false, tokens(0), 1500},
		"an older runner has read its result":            {false, nil, 1000},
		"its result is read, and that of a deleted one":  {false, tokens(900), 1000},
		"it waits for its result, and a deleted one was": {true, tokens(500), 1500},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := stateWithRequests(t, withReviewer(gen.Objects()), review("s2c1"))
			child := childOf(s, s.delegations(s.progress())[0], nil)
			finish := metav1.NewTime(gen.Noon)
			child.Status.CompletionTime = &finish
			child.Status.Progress = &v1alpha1.RunProgress{Usage: v1alpha1.Usage{TotalTokens: 500}}
			s.children = []v1alpha1.Run{*child}
			p := s.run.Status.Progress
			p.Usage.TotalTokens, p.Usage.ChildTokens = 1000, tc.charged
			if !tc.asked {
				p.Pending = nil
			}
			if got := s.budget().Used[children.Tokens]; got != tc.want {
				t.Errorf("used %d, want %d", got, tc.want)
			}
		})
	}
}

// A cost that nobody knows counts as all that was reserved until the result is read, and then as
// nothing, as it does for the runner. What is known of it always counts.
func TestTheUnknownCostOfAChildRun(t *testing.T) {
	micro := func(n int64) *int64 { return &n }
	cases := map[string]struct {
		asked            bool
		of, own, charged *int64
		want             int64
	}{
		"it is not read": {true, nil, micro(100), micro(0), 500_100},
		"it is read, and that of the Run is unknown": {false, nil, nil, micro(0), 0},
		"another one is known":                       {false, micro(30), nil, micro(30), 30},
		"another one is known, and not read":         {false, micro(30), nil, micro(0), 30},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := stateWithRequests(t, withReviewer(gen.Objects()), review("s2c1"))
			reserved := v1alpha1.Money("0.5USD")
			child := childOf(s, s.delegations(s.progress())[0], &v1alpha1.Limits{Cost: &reserved})
			finish := metav1.NewTime(gen.Noon)
			child.Status.CompletionTime = &finish
			child.Status.Progress = &v1alpha1.RunProgress{Usage: v1alpha1.Usage{TotalTokens: 500, CostMicroUSD: tc.of}}
			s.children = []v1alpha1.Run{*child}
			p := s.run.Status.Progress
			p.Usage = v1alpha1.Usage{TotalTokens: 1000, CostMicroUSD: tc.own, ChildTokens: micro(500), ChildCostMicroUSD: tc.charged}
			if !tc.asked {
				p.Pending = nil
			}
			if got := s.budget().Used[children.Cost]; got != tc.want {
				t.Errorf("used %d, want %d", got, tc.want)
			}
		})
	}
}

// What an Agent says of its cost and tokens is kept, and money is written as the
// API reads it.
func TestAShareIsWrittenAsLimits(t *testing.T) {
	o := withReviewer(gen.Objects())
	cost, tokens, whole := v1alpha1.Money("0.25USD"), v1alpha1.Tokens("10k"), v1alpha1.Money("1USD")
	o.Agents["reviewer"].Spec.Limits = v1alpha1.AgentLimits{Limits: v1alpha1.Limits{Cost: &cost, Tokens: &tokens}}
	s := stateWithRequests(t, o, review("s2c1"))
	s.run.Spec.Limits = &v1alpha1.Limits{Cost: &whole}
	p, _ := delegating(s)
	if l := p.child.Spec.Limits; *l.Cost != "0.25USD" || *l.Tokens != "10000" || *l.Depth != 3 {
		t.Errorf("limits are %s, %s, %d", *l.Cost, *l.Tokens, *l.Depth)
	}
}

// As many results are told as fit, one always, whatever is in them.
func TestResultsFitTheSignals(t *testing.T) {
	s := stateWithRequests(t, withReviewer(gen.Objects()), review("s2c1"), review("s2c2"), review("s2c3"), review("s2c4"))
	now := metav1.NewTime(gen.Noon)
	add := func(text string) {
		d := s.delegations(s.progress())[len(s.children)]
		child := childOf(s, d, nil)
		child.Status.CompletionTime = &now
		child.Status.Progress = &v1alpha1.RunProgress{Result: &v1alpha1.Result{Text: text[:len(text)/3], Output: text}}
		s.children = append(s.children, *child)
	}
	add(strings.Repeat("\x01", task.MaxOutput))
	if got := pendingChildResults(s, s.progress(), nil); len(got) != 1 {
		t.Errorf("%d are told of the one that is too large", len(got))
	}
	s.children = nil
	for range 4 {
		add(strings.Repeat("x", task.MaxOutput))
	}
	got := pendingChildResults(s, s.progress(), nil)
	if size := len(runnerpod.ToJSON(got)); len(got) != 2 || size > task.MaxChildSignals+len(got)+2 {
		t.Errorf("%d are told, %d bytes", len(got), size)
	}
	// A person is heard all the same.
	s.decisions = []v1alpha1.Decision{{ObjectMeta: metav1.ObjectMeta{Name: "m", CreationTimestamp: now}, Spec: v1alpha1.DecisionSpec{Run: "x", Type: v1alpha1.DecisionMessage, Value: strings.Repeat("x", 1000), By: "ann"}}}
	for n := range 3 {
		d := s.decisions[0]
		d.Name = fmt.Sprint("n", n)
		s.decisions = append(s.decisions, d)
	}
	if said := pendingDecisions(s, task.Signals{Children: got}); len(said) != 4 {
		t.Errorf("%d of 4 messages are told beside them", len(said))
	}
}

// Only a Run that the operator made for another is believed to be for a revision.
func TestOnlyAPartOfARunIsPinned(t *testing.T) {
	run := gen.Run(func(r *v1alpha1.Run) { r.Annotations = map[string]string{v1alpha1.AnnotationRevisionHash: "hash"} })
	if children.FixedRevision(run) != "" {
		t.Error("a Run of its own is pinned")
	}
	owner := *metav1.NewControllerRef(run, v1alpha1.GroupVersion.WithKind("Run"))
	for _, bend := range []func(*metav1.OwnerReference){
		func(o *metav1.OwnerReference) { o.Controller = nil },
		func(o *metav1.OwnerReference) { o.Kind = "Schedule" },
		func(o *metav1.OwnerReference) { o.APIVersion = "example.com/v1" },
	} {
		bent := owner
		bend(&bent)
		run.OwnerReferences = []metav1.OwnerReference{bent}
		if children.FixedRevision(run) != "" {
			t.Errorf("one of %+v is pinned", bent)
		}
	}
	run.OwnerReferences = []metav1.OwnerReference{owner}
	if children.FixedRevision(run) != "hash" {
		t.Error("a part of a Run is not")
	}
	c := newCluster(t, run, nil)
	if p := c.step(); p.reason != v1alpha1.ReasonMisconfigured {
		t.Errorf("one whose revision is gone is %s", p.reason)
	}
}

func TestRestoredRunIsNoChild(t *testing.T) {
	s := stateWithRequests(t, withReviewer(gen.Objects()), review("s2c1"))
	child := childOf(s, s.delegations(s.progress())[0], nil)
	if !isChild(child, s.run) {
		t.Fatal("what is made for a request is no child")
	}
	child.Labels["velero.io/restore-name"] = "nightly" // whoever may create Runs may write such a one
	if isChild(child, s.run) {
		t.Error("a Run that a backup restored is the answer to a request")
	}
}
