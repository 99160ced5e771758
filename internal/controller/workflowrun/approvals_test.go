package workflowrun

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
)

// asked is a Run that asks for an hour whether to ship.
func asked(t *testing.T) *cluster {
	t.Helper()
	c := begun(t, asks)
	ends("x-a", 7)(c)
	c.step()
	return c
}

// Which Decisions an approval goes by.
func TestWhichDecisionsCount(t *testing.T) {
	approve := decides("gate", v1alpha1.DecisionApprove)
	made := func(after time.Duration) func(*cluster) {
		return func(c *cluster) {
			approve(c)
			c.decided[0].CreationTimestamp = metav1.NewTime(c.now.Add(after))
			c.now = c.now.Add(2 * time.Hour)
		}
	}
	owner := func(change func(*metav1.OwnerReference)) func(*cluster) {
		return func(c *cluster) {
			approve(c)
			change(&c.decided[0].OwnerReferences[0])
		}
	}
	recorded := func(d v1alpha1.DecidedRequest) func(*cluster) {
		return func(c *cluster) { c.run.Status.Progress.Decided = append(c.run.Status.Progress.Decided, d) }
	}
	ofGate := v1alpha1.DecidedRequest{Name: "x.early", Request: requestOf("gate"), Type: v1alpha1.DecisionApprove}
	refused, denied := ofGate, ofGate
	refused.Refused, denied.Type = "the digest is of another request", v1alpha1.DecisionDeny
	cases := map[string]struct {
		do   []func(*cluster)
		want graph.ApprovalState
	}{
		"none":                                 {nil, graph.Open},
		"an approval":                          {[]func(*cluster){approve}, graph.Approved},
		"a denial":                             {[]func(*cluster){decides("gate", v1alpha1.DecisionDeny)}, graph.Denied},
		"one that the Run does not own":        {[]func(*cluster){approve, disowned}, graph.Open},
		"one that another Run owns":            {[]func(*cluster){owner(func(o *metav1.OwnerReference) { o.UID = "another" })}, graph.Open},
		"one that a Run of another name owns":  {[]func(*cluster){owner(func(o *metav1.OwnerReference) { o.Name = "y" })}, graph.Open},
		"one that another kind owns":           {[]func(*cluster){owner(func(o *metav1.OwnerReference) { o.Kind = "Agent" })}, graph.Open},
		"one just in time":                     {[]func(*cluster){made(time.Hour - time.Second)}, graph.Approved},
		"one when the time is over":            {[]func(*cluster){made(time.Hour)}, graph.Expired},
		"one that is late":                     {[]func(*cluster){made(time.Hour + time.Second)}, graph.Expired},
		"a recorded one":                       {[]func(*cluster){recorded(ofGate)}, graph.Approved},
		"a recorded one that was refused":      {[]func(*cluster){recorded(refused)}, graph.Open},
		"a refused one, then a denial":         {[]func(*cluster){recorded(refused), recorded(denied)}, graph.Denied},
		"a refused one, then one that is made": {[]func(*cluster){recorded(refused), approve}, graph.Approved},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := asked(t)
			for _, do := range tc.do {
				do(c)
			}
			states, _ := approvalStates(c.observed())
			if got := states["gate"]; got != tc.want {
				t.Errorf("the approval is %v, want %v", got, tc.want)
			}
		})
	}
}

// A Decision on one request says nothing of another: the digest is of all that is asked, who may
// answer included.
func TestTheDigestIsOfAllThatIsAsked(t *testing.T) {
	c := asked(t)
	m := newEvaluator(c.observed(), "", "")
	base := request(c.observed().pending(), requestOf("gate"))
	sum := func(node, text string, change func(*v1alpha1.PendingRequest)) string {
		p := *base
		change(&p)
		return digest(m.run.UID, node, text, p)
	}
	same := func(*v1alpha1.PendingRequest) {}
	digests := map[string]string{
		"the request":     sum("gate", "Ship 7?", same),
		"another node":    sum("other", "Ship 7?", same),
		"another text":    sum("gate", "Ship 8?", same),
		"other approvers": sum("gate", "Ship 7?", func(p *v1alpha1.PendingRequest) { p.Approvers = &v1alpha1.Approvers{Groups: []string{"sre"}} }),
		"yet others":      sum("gate", "Ship 7?", func(p *v1alpha1.PendingRequest) { p.Approvers = &v1alpha1.Approvers{Groups: []string{"sre", "dev"}} }),
		"users":           sum("gate", "Ship 7?", func(p *v1alpha1.PendingRequest) { p.Approvers = &v1alpha1.Approvers{Users: []string{"sre"}} }),
		"users too": sum("gate", "Ship 7?", func(p *v1alpha1.PendingRequest) {
			p.Approvers = &v1alpha1.Approvers{Groups: []string{"sre"}, Users: []string{"dev"}}
		}),
		"a form": sum("gate", "Ship 7?", func(p *v1alpha1.PendingRequest) { p.Schema = "{}" }),
	}
	if digests["the request"] != base.Digest {
		t.Errorf("the request has the digest %s, want %s", base.Digest, digests["the request"])
	}
	m.run.UID = "another"
	digests["another Run"] = sum("gate", "Ship 7?", same)
	seen := map[string]string{}
	for what, d := range digests {
		if other, is := seen[d]; is || d == "" {
			t.Errorf("%s and %s have the digest %q", what, other, d)
		}
		seen[d] = what
	}
}

// askedAgain is how the approval of a retry came about, after all that its Run does by itself.
func askedAgain(t *testing.T, spec, node string, change func(*cluster)) string {
	t.Helper()
	c := newCluster(whole(t, spec), retries(node))
	c.before = playBefore(t, *approvedThenFailed)
	c.rest()
	change(c)
	if isReused(c.child("x-a")) && c.child("x-a").Status.CompletionTime == nil {
		reuses("x-a")(c)
	} else if !isReused(c.child("x-a")) {
		ends("x-a", 1)(c)
	}
	c.rest()
	switch state := recordedState(c.observed(), "gate").State; {
	case request(c.observed().pending(), requestOf("gate")) != nil:
		return "asked"
	case state == graph.Succeeded:
		return "reused"
	default:
		return string(state)
	}
}

// The Decision of the Run before proves an approval of this Run only if all of these hold.
func TestWhichApprovalsAreReused(t *testing.T) {
	gate := func(old, changed string) string { return strings.Replace(asks, old, changed, 1) }
	decision := func(change func(*v1alpha1.Decision)) func(*cluster) {
		return func(c *cluster) { change(&c.before.decided[0]) }
	}
	recorded := func(change func(*v1alpha1.DecidedRequest)) func(*cluster) {
		return func(c *cluster) { change(&c.before.run.Status.Progress.Decided[0]) }
	}
	owner := func(change func(*metav1.OwnerReference)) func(*cluster) {
		return decision(func(d *v1alpha1.Decision) { change(&d.OwnerReferences[0]) })
	}
	const approval = "expiresAfter: 1h"
	for name, tc := range map[string]struct {
		spec, node string
		do         func(*cluster)
		want       string
	}{
		"nothing has changed":               {want: "reused"},
		"the time to decide":                {spec: gate(approval, "expiresAfter: 2h"), want: "reused"},
		"a prompt after it":                 {spec: gate("ship, as", "send, as"), want: "reused"},
		"a node after it is named":          {node: "ship", want: "reused"},
		"the node itself is named":          {node: "gate", want: "asked"},
		"a node before it is named":         {node: "a", want: "asked"},
		"a node before it runs again":       {spec: gate("count", "count again"), want: "asked"},
		"the message":                       {spec: gate("Ship $", "Release $"), want: "asked"},
		"the message names the Run":         {spec: gate("Ship $", "${{ run.name }}: Ship $"), want: "asked"},
		"groups":                            {spec: gate(approval, approval+", approvers: {groups: [sre]}"), want: "asked"},
		"users":                             {spec: gate(approval, approval+", approvers: {users: [ann]}"), want: "asked"},
		"the schema":                        {spec: gate(approval, approval+", input: {fields: [{name: env, type: String}]}"), want: "asked"},
		"a message that is an error":        {spec: gate("nodes.a.output.n }}?", "1 / (nodes.a.output.n - 1) }}?"), want: "asked"},
		"the Decision is gone":              {do: func(c *cluster) { c.before.decided = nil }, want: "asked"},
		"the Run before is gone":            {do: func(c *cluster) { reuses("x-a")(c); c.before.delete() }, want: "asked"},
		"a Decision of another name":        {do: decision(func(d *v1alpha1.Decision) { d.Name += ".2" }), want: "asked"},
		"a Decision for another Run":        {do: decision(func(d *v1alpha1.Decision) { d.Spec.Run = "v" }), want: "asked"},
		"a Decision on another request":     {do: decision(func(d *v1alpha1.Decision) { d.Spec.Request = "approval-other" }), want: "asked"},
		"a Decision with another digest":    {do: decision(func(d *v1alpha1.Decision) { d.Spec.Digest = strings.Repeat("e", 64) }), want: "asked"},
		"a denial in its place":             {do: decision(func(d *v1alpha1.Decision) { d.Spec.Type = v1alpha1.DecisionDeny }), want: "asked"},
		"one that is not applied yet":       {do: decision(func(d *v1alpha1.Decision) { d.Status.Conditions = nil }), want: "asked"},
		"one that was refused":              {do: decision(func(d *v1alpha1.Decision) { d.Status.Conditions[0].Status = metav1.ConditionFalse }), want: "asked"},
		"one that is younger than this Run": {do: decision(func(d *v1alpha1.Decision) { d.CreationTimestamp.Time = gen.Noon.Add(time.Second) }), want: "asked"},
		"one that no Run owns":              {do: decision(func(d *v1alpha1.Decision) { d.OwnerReferences = nil }), want: "asked"},
		"one that another Run owns":         {do: owner(func(o *metav1.OwnerReference) { o.UID = "another" }), want: "asked"},
		"one that another kind owns":        {do: owner(func(o *metav1.OwnerReference) { o.Kind = "Agent" }), want: "asked"},
		"one that only this Run owns":       {do: owner(func(o *metav1.OwnerReference) { o.Name, o.UID = "x", "run-uid" }), want: "asked"},
		"one with as many owners as the cache has": {do: decision(func(d *v1alpha1.Decision) {
			d.OwnerReferences = append(d.OwnerReferences, make([]metav1.OwnerReference, 15)...)
		}), want: "asked"},
		"the Run before reports nothing":   {do: func(c *cluster) { c.before.run.Status.Progress = nil }, want: "asked"},
		"the Run before reports a denial":  {do: recorded(func(d *v1alpha1.DecidedRequest) { d.Type = v1alpha1.DecisionDeny }), want: "asked"},
		"the Run before reports a refusal": {do: recorded(func(d *v1alpha1.DecidedRequest) { d.Refused = "no" }), want: "asked"},
		"the Run before reports no digest": {do: recorded(func(d *v1alpha1.DecidedRequest) { d.Digest = "" }), want: "asked"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.do == nil {
				tc.do = func(*cluster) {}
			}
			if got := askedAgain(t, cmp.Or(tc.spec, asks), tc.node, tc.do); got != tc.want {
				t.Errorf("the approval is %s, want %s", got, tc.want)
			}
		})
	}
}

// A rejection is no result: the node did not succeed, also if its failure does not end the Run.
func TestADenialIsAskedAgain(t *testing.T) {
	spec := strings.Replace(strings.Replace(asks, "- name: gate\n", "- name: gate\n  onFailure: Continue\n", 1), "output.by", "?output.?by.orValue('')", 1)
	c := newCluster(whole(t, spec), retries("ship"))
	c.before = playBefore(t, story{spec: spec, beats: []beat{at(0, "", ends("w-a", 1)), at(0, "", decides("gate", v1alpha1.DecisionDeny)), at(0, "", ends("w-ship", 0))}})
	c.rest()
	reuses("x-a")(c)
	c.rest()
	if request(c.observed().pending(), requestOf("gate")) == nil {
		t.Errorf("the nodes are %+v", c.run.Status.Nodes)
	}
}

// A message that could not be computed says nothing, so its approval counts once.
func TestAMessageThatIsAnErrorIsAskedAgain(t *testing.T) {
	spec := strings.Replace(asks, "nodes.a.output.n }}?", "1 / (nodes.a.output.n - 1) }}?", 1)
	c := newCluster(whole(t, spec), retries(""))
	c.before = playBefore(t, story{spec: spec, beats: approvedThenFailed.beats})
	c.rest()
	reuses("x-a")(c)
	c.rest()
	if request(c.observed().pending(), requestOf("gate")) == nil {
		t.Errorf("the nodes are %+v", c.run.Status.Nodes)
	}
}

// In a chain of retries, each Run owns the Decision of the first. Without the Run that asked, the next one asks.
func TestApprovalsInAChain(t *testing.T) {
	third := func(t *testing.T, meanwhile func(first, second *cluster)) *cluster {
		t.Helper()
		first := playBefore(t, *approvedThenFailed)
		second := newCluster(whole(t, asks), retries(""), func(r *v1alpha1.Run) { r.Name, r.UID = "second", "uid-second" })
		second.before = first
		second.rest()
		reuses("second-a")(second)
		second.rest()
		fails("second-ship", v1alpha1.ReasonStuck, "it goes in circles")(second)
		second.rest()
		meanwhile(first, second)
		c := newCluster(whole(t, asks), retries(""), func(r *v1alpha1.Run) { r.Spec.ContinueFrom.Run = "second" })
		c.before = second
		c.rest()
		reuses("x-a")(c)
		return c.rest()
	}
	c := third(t, func(*cluster, *cluster) {})
	want := v1alpha1.DecidedRequest{Name: "w.approval-gate", Request: "approval-gate", Type: v1alpha1.DecisionApprove, Digest: c.before.before.run.Status.Progress.Decided[0].Digest}
	if diff := gocmp.Diff([]v1alpha1.DecidedRequest{want}, c.run.Status.Progress.Decided); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var owners []string
	for _, o := range c.before.before.decided[0].OwnerReferences {
		owners = append(owners, string(o.UID))
	}
	if !slices.Equal(owners, []string{"uid-w", "uid-second", "run-uid"}) {
		t.Errorf("the owners are %v", owners)
	}
	c = third(t, func(first, _ *cluster) {
		first.decided[0].OwnerReferences = slices.DeleteFunc(first.decided[0].OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == "uid-second" })
	})
	if request(c.observed().pending(), requestOf("gate")) == nil {
		t.Errorf("the Run before does not own the Decision, and the nodes are %+v", c.run.Status.Nodes)
	}
	c = third(t, func(first, _ *cluster) { first.delete() })
	if request(c.observed().pending(), requestOf("gate")) == nil || runstatus.OutcomeOf(c.before.run.Status).Reason != v1alpha1.ReasonNodeFailed {
		t.Errorf("after the Run that asked was deleted, the nodes are %+v", c.run.Status.Nodes)
	}
}
