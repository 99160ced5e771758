package workflowrun

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
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
	digest := func(node, text string, change func(*v1alpha1.PendingRequest)) string {
		p := *base
		change(&p)
		return m.digest(node, text, p)
	}
	same := func(*v1alpha1.PendingRequest) {}
	digests := map[string]string{
		"the request":     digest("gate", "Ship 7?", same),
		"another node":    digest("other", "Ship 7?", same),
		"another text":    digest("gate", "Ship 8?", same),
		"other approvers": digest("gate", "Ship 7?", func(p *v1alpha1.PendingRequest) { p.Approvers = &v1alpha1.Approvers{Groups: []string{"sre"}} }),
		"yet others":      digest("gate", "Ship 7?", func(p *v1alpha1.PendingRequest) { p.Approvers = &v1alpha1.Approvers{Groups: []string{"sre", "dev"}} }),
		"users":           digest("gate", "Ship 7?", func(p *v1alpha1.PendingRequest) { p.Approvers = &v1alpha1.Approvers{Users: []string{"sre"}} }),
		"users too": digest("gate", "Ship 7?", func(p *v1alpha1.PendingRequest) {
			p.Approvers = &v1alpha1.Approvers{Groups: []string{"sre"}, Users: []string{"dev"}}
		}),
		"a form": digest("gate", "Ship 7?", func(p *v1alpha1.PendingRequest) { p.Schema = "{}" }),
	}
	if digests["the request"] != base.Digest {
		t.Errorf("the request has the digest %s, want %s", base.Digest, digests["the request"])
	}
	m.run.UID = "another"
	digests["another Run"] = digest("gate", "Ship 7?", same)
	seen := map[string]string{}
	for what, d := range digests {
		if other, is := seen[d]; is || d == "" {
			t.Errorf("%s and %s have the digest %q", what, other, d)
		}
		seen[d] = what
	}
}
