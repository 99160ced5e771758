package decisions_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

const envSchema = `{"type":"object","required":["env"],"properties":{"env":{"enum":["staging","production"]}}}`

// gate is what an approval of a workflow asks.
func gate(mods ...func(*v1alpha1.PendingRequest)) v1alpha1.PendingRequest {
	p := v1alpha1.PendingRequest{ID: "approval-gate", Kind: "Approval", Tool: "approval", Question: "Deploy to the harbor?", Digest: strings.Repeat("d", 64)}
	for _, mod := range mods {
		mod(&p)
	}
	return p
}

func withSchema(p *v1alpha1.PendingRequest) { p.Schema = envSchema }

func ofLeads(p *v1alpha1.PendingRequest) {
	p.Approvers = &v1alpha1.Approvers{Groups: []string{"leads"}}
}

// flow is a Run of a workflow that asks for something.
func flow(pending ...v1alpha1.PendingRequest) *v1alpha1.Run {
	return gen.Run(func(r *v1alpha1.Run) {
		r.Spec.Agent, r.Spec.Prompt, r.Spec.Workflow = "", "", "release"
		r.Status.Progress = &v1alpha1.RunProgress{Pending: pending}
	})
}

func unbegun() *v1alpha1.Run {
	run := flow()
	run.Status.Progress = nil
	return run
}

func TestJudgeOfWorkflows(t *testing.T) {
	right := strings.Repeat("d", 64)
	says := func(kind v1alpha1.DecisionType, mods ...func(*v1alpha1.DecisionSpec)) *v1alpha1.Decision {
		d := decision(kind, "approval-gate")
		d.Name, d.Spec.Digest = "x.approval-gate", right
		for _, mod := range mods {
			mod(&d.Spec)
		}
		return d
	}
	value := func(text string) func(*v1alpha1.DecisionSpec) {
		return func(s *v1alpha1.DecisionSpec) { s.Value = text }
	}
	undigested := func(s *v1alpha1.DecisionSpec) { s.Digest = "" }
	wrong := func(s *v1alpha1.DecisionSpec) { s.Digest = strings.Repeat("e", 64) }
	groups := func(names ...string) func(*v1alpha1.DecisionSpec) {
		return func(s *v1alpha1.DecisionSpec) { s.Groups = names }
	}
	unnamed := func(s *v1alpha1.DecisionSpec) { s.Request = "" }
	forAll := func(s *v1alpha1.DecisionSpec) { s.Scope = v1alpha1.ScopeRun }
	acted := decided(flow(), "x.approval-gate", "")
	const (
		approve, deny = v1alpha1.DecisionApprove, v1alpha1.DecisionDeny
		onItsWay      = "Unknown On its way to Run x"
		speak         = "(kubectl get runs -l deckhand.dev/workflow-run=x)"
	)
	cases := map[string]struct {
		run      *v1alpha1.Run
		decision *v1alpha1.Decision
		want     []string // the first is how it begins
	}{
		"an approval":                       {flow(gate()), says(approve), []string{onItsWay}},
		"an approval by its id":             {flow(gate()), says(approve, undigested), []string{onItsWay}},
		"a denial, which needs no digest":   {flow(gate()), says(deny, wrong), []string{onItsWay}},
		"one of two":                        {flow(gate(func(p *v1alpha1.PendingRequest) { p.ID = "approval-other" }), gate()), says(approve), []string{onItsWay}},
		"of something else":                 {flow(gate()), says(approve, wrong), []string{"False spec.digest is not the digest of request approval-gate: another call was approved"}},
		"by a member":                       {flow(gate(ofLeads)), says(approve, groups("staff", "leads")), []string{onItsWay}},
		"by somebody else":                  {flow(gate(ofLeads)), says(deny, groups("staff")), []string{"False Request approval-gate can be decided only by members of leads"}},
		"with what it asks for":             {flow(gate(withSchema)), says(approve, value(`{"env": "staging"}`)), []string{onItsWay}},
		"with something else":               {flow(gate(withSchema)), says(approve, value(`{"env": "nowhere"}`)), []string{"False The value does not fit what approval-gate asks for", `"production"`}},
		"with what is no JSON":              {flow(gate(withSchema)), says(approve, value("staging")), []string{"False The value does not fit"}},
		"without what it asks for":          {flow(gate(withSchema)), says(approve), []string{"False approval-gate asks for a value with the Approve: write in spec.value JSON for the schema “" + envSchema}},
		"a denial says nothing of that":     {flow(gate(withSchema)), says(deny), []string{onItsWay}},
		"with what nobody asked for":        {flow(gate()), says(approve, value(`{}`)), []string{"False approval-gate takes no value with an Approve: remove spec.value"}},
		"for every time, though it is once": {flow(gate()), says(approve, forAll), []string{"False approval-gate is asked once, so scope: Run means nothing"}},
		"before the Run has begun":          {unbegun(), says(approve), []string{"False Run x does not wait for approval-gate: it has not begun"}},
		"before the node is reached":        {flow(), says(approve), []string{"False Run x does not wait for approval-gate; it has no open request"}},
		"of another node":                   {flow(gate(func(p *v1alpha1.PendingRequest) { p.ID = "approval-other" })), says(approve), []string{"False Run x does not wait for approval-gate; it waits for approval-other"}},
		"after the Run has finished":        {finished(flow(gate())), says(approve), []string{"False Run x has finished"}},
		"one that was acted on":             {acted, says(approve), []string{"True Run x acted on it"}},
		"that ended the Run":                {finished(decided(flow(), "x.approval-gate", "")), says(deny), []string{"True Run x acted on it"}},
		"a second one on the same":          {acted, func() *v1alpha1.Decision { d := says(deny); d.Name = "x.approval-gate.2"; return d }(), []string{"False Run x does not wait for approval-gate"}},
		"a message":                         {flow(gate()), says(v1alpha1.DecisionMessage, unnamed, value("Hurry.")), []string{"False Run x is of a workflow, which has no agent that could read a message", speak}},
		"a message before it has begun":     {unbegun(), says(v1alpha1.DecisionMessage, unnamed), []string{"False Run x is of a workflow, which has no agent that could read a message"}},
		"an answer":                         {flow(gate()), says(v1alpha1.DecisionAnswer, value("yes")), []string{"False Run x is of a workflow, which takes only Approve and Deny, not Answer", speak, "it waits for approval-gate"}},
		"a grant, of no request":            {unbegun(), says(v1alpha1.DecisionGrant, unnamed), []string{"False Run x is of a workflow, which takes only Approve and Deny, not Grant"}},
		"for an earlier Run of that name":   {flow(gate()), owned(says(approve), "another"), []string{"False The Decision is for an earlier Run x"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := decisions.Evaluate(tc.run, tc.decision)
			text := string(got.Applied) + " " + got.Message
			if !strings.HasPrefix(text, tc.want[0]) {
				t.Errorf("Judge() = %q, want %q", text, tc.want[0])
			}
			for _, part := range tc.want[1:] {
				if !strings.Contains(text, part) {
					t.Errorf("Judge() = %q, want %q in it", text, part)
				}
			}
			if got.Deliver != (got.Applied == metav1.ConditionUnknown) || got.Deliver && got.Request != "approval-gate" {
				t.Errorf("deliver %t %q", got.Deliver, got.Request)
			}
		})
	}
}

// What an agent has asked of the operator is nobody's to decide, and no question.
func TestADelegationIsForNobody(t *testing.T) {
	child := v1alpha1.PendingRequest{ID: "s2c1", Kind: "Delegation", Agent: "reviewer", Args: `{"prompt":"Look."}`, Digest: "d1"}
	question := v1alpha1.PendingRequest{ID: "s3c1", Kind: "Question", Question: "Which?"}
	for _, kind := range []v1alpha1.DecisionType{v1alpha1.DecisionApprove, v1alpha1.DecisionDeny, v1alpha1.DecisionAnswer, v1alpha1.DecisionGrant} {
		d := decision(kind, "s2c1")
		d.Spec.Digest = "d1"
		got := decisions.Evaluate(runWithRequests(child, question), d)
		if got.Applied != metav1.ConditionFalse || got.Deliver || !strings.Contains(got.Message, "Request s2c1 is for a child Run of Agent reviewer") || !strings.Contains(got.Message, "-l deckhand.dev/parent-run=x") {
			t.Errorf("%s: Evaluate() = %+v", kind, got)
		}
	}
	if got := decisions.Evaluate(runWithRequests(child, question), decision(v1alpha1.DecisionAnswer, "s9c9")); !strings.HasSuffix(got.Message, "it waits for s3c1") {
		t.Errorf("Judge() says %q", got.Message)
	}
	if got := decisions.PendingMessage("x", []v1alpha1.PendingRequest{child, question}, nil); !strings.Contains(got, "It asks: “Which?”") || strings.Contains(got, "more in status") {
		t.Errorf("PendingMessage() = %q", got)
	}
	if got := decisions.PendingMessage("x", []v1alpha1.PendingRequest{child}, nil); got != "The runner waits for a person" {
		t.Errorf("PendingMessage() = %q", got)
	}
}

func TestAWorkflowAsksAndSaysHow(t *testing.T) {
	got := decisions.PendingMessage("x", []v1alpha1.PendingRequest{gate(withSchema, ofLeads)}, nil)
	want := "It asks: “Deploy to the harbor?” To answer, kubectl create a Decision named x.approval-gate with spec {run: x, request: approval-gate, type: Approve, value: '<JSON for the schema in status.progress.pending>' (or type: Deny), groups: [<one of leads>], by: <your user name>}"
	if got != want {
		t.Errorf("PendingMessage() = %q, want %q", got, want)
	}
}

// A call of an agent takes no value, as the approval of a workflow that asks for
// none.
func TestAnApprovalOfACallTakesNoValue(t *testing.T) {
	d := decision(v1alpha1.DecisionApprove, "s3c1")
	d.Spec.Digest, d.Spec.Value = "d1", `{}`
	got := decisions.Evaluate(runWithRequests(v1alpha1.PendingRequest{ID: "s3c1", Kind: "Approval", Digest: "d1"}), d)
	if got.Applied != metav1.ConditionFalse || !strings.HasPrefix(got.Message, "s3c1 takes no value with an Approve: remove spec.value") {
		t.Errorf("Judge() = %+v", got)
	}
}
