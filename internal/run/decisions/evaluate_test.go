package decisions_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// runWithRequests is a Run at its second attempt whose runner waits for Decisions.
func runWithRequests(pending ...v1alpha1.PendingRequest) *v1alpha1.Run {
	return gen.Run(func(r *v1alpha1.Run) {
		r.Status.Attempt = &v1alpha1.Attempt{Number: 2}
		r.Status.Progress = &v1alpha1.RunProgress{Attempt: 2, Pending: pending}
	})
}

func decided(run *v1alpha1.Run, name, refused string) *v1alpha1.Run {
	run.Status.Progress.Decided = []v1alpha1.DecidedRequest{{Name: name, Refused: refused}}
	return run
}

func finished(run *v1alpha1.Run) *v1alpha1.Run {
	now := metav1.NewTime(gen.Noon)
	run.Status.CompletionTime = &now
	return run
}

func begun(run *v1alpha1.Run, at time.Time) *v1alpha1.Run {
	run.Status.Attempt.StartedAt = metav1.NewTime(at)
	return run
}

func made(d *v1alpha1.Decision, at time.Time) *v1alpha1.Decision {
	d.CreationTimestamp = metav1.NewTime(at)
	return d
}

func owned(d *v1alpha1.Decision, by types.UID) *v1alpha1.Decision {
	d.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: d.Spec.Run, UID: by}}
	return d
}

func grant(request string, added v1alpha1.Grant) *v1alpha1.Decision {
	d := decision(v1alpha1.DecisionGrant, request)
	d.Spec.Grant = &added
	return d
}

func decision(kind v1alpha1.DecisionType, request string) *v1alpha1.Decision {
	return &v1alpha1.Decision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "d"},
		Spec:       v1alpha1.DecisionSpec{Run: "x", Request: request, Type: kind},
	}
}

func TestJudge(t *testing.T) {
	const (
		onItsWay = "Unknown On its way to the runner"
		toAnswer = v1alpha1.DecisionAnswer
		toGrant  = v1alpha1.DecisionGrant
		toSay    = v1alpha1.DecisionMessage
	)
	question := v1alpha1.PendingRequest{ID: "s3c1", Kind: "Question"}
	another := v1alpha1.PendingRequest{ID: "s3c2", Kind: "Question"}
	limit := v1alpha1.PendingRequest{ID: "limit-steps-1", Kind: "Limit"}
	steps := v1alpha1.Grant{Steps: new(int32(5))}
	unreported := runWithRequests(question)
	unreported.Status.Progress.Attempt = 1
	unrecorded := runWithRequests(question)
	unrecorded.Status.Attempt = nil
	unrecordedToo := unrecorded.DeepCopy()
	deleted := runWithRequests(question)
	deleted.DeletionTimestamp = &metav1.Time{Time: gen.Noon}

	cases := map[string]struct {
		run      *v1alpha1.Run
		decision *v1alpha1.Decision
		want     string
		request  string // what is delivered; "-": nothing
	}{
		"no Run":                                       {nil, decision(toAnswer, "s3c1"), `False Run "x" not found in namespace team-a. Delete the Decision, and create one with the name of a Run in spec.run`, "-"},
		"a Run that goes":                              {deleted, decision(toAnswer, "s3c1"), `False Run "x" not found`, "-"},
		"a Run that is not started":                    {gen.Run(), decision(toSay, ""), "Unknown Waiting for the runner of Run x to report", "-"},
		"an attempt that has not reported":             {unreported, decision(toSay, ""), "Unknown Waiting for the runner", "-"},
		"an answer to one that has not":                {unreported, decision(toAnswer, "s3c1"), "False Run x has no open request: its runner has not reported yet", "-"},
		"an answer before it is recorded":              {unrecorded, decision(toAnswer, "s3c1"), "Unknown Waiting for the operator to record the attempt of Run x", "-"},
		"a message that an unknown runner says it has": {decided(unrecordedToo, "d", ""), decision(toSay, ""), "Unknown Waiting for the runner of Run x to report", "-"},
		"an answer to the attempt before":              {begun(runWithRequests(question), gen.Noon), made(decision(toAnswer, "s3c1"), gen.Noon.Add(-time.Second)), "False The Decision was made before attempt 2 of Run x began: requests of earlier attempts are not open any more; it waits for s3c1", "-"},
		"an answer as soon as it began":                {begun(runWithRequests(question), gen.Noon), made(decision(toAnswer, "s3c1"), gen.Noon), onItsWay, "s3c1"},
		"a message to the attempt before":              {begun(runWithRequests(), gen.Noon), made(decision(toSay, ""), gen.Noon.Add(-time.Second)), onItsWay, ""},
		"one for this very Run":                        {runWithRequests(), owned(decision(toSay, ""), runWithRequests().UID), onItsWay, ""},
		"one for a Run of that name":                   {decided(runWithRequests(), "d", ""), owned(decision(toSay, ""), "another"), "False The Decision is for an earlier Run x, which was deleted", "-"},
		"a finished Run":                               {finished(runWithRequests(question)), decision(toAnswer, "s3c1"), "False Run x has finished and takes no more decisions. Create another Run", "-"},
		"an answer to a question":                      {runWithRequests(another, question), decision(toAnswer, "s3c1"), onItsWay, "s3c1"},
		"an answer to nothing":                         {runWithRequests(), decision(toAnswer, "s3c1"), "False Run x does not wait for s3c1; it has no open request", "-"},
		"an answer to something else":                  {runWithRequests(another, limit), decision(toAnswer, "s3c1"), "False Run x does not wait for s3c1; it waits for s3c2, limit-steps-1", "-"},
		"an answer to a limit":                         {runWithRequests(limit), decision(toAnswer, "limit-steps-1"), "False Request limit-steps-1 is of kind Limit: use the type Grant, not Answer", "-"},
		"a grant to a question":                        {runWithRequests(question), decision(toGrant, "s3c1"), "False Request s3c1 is of kind Question: use the type Answer, not Grant", "-"},
		"a grant to a limit":                           {runWithRequests(limit), grant("limit-steps-1", steps), onItsWay, "limit-steps-1"},
		"a kind that is not known":                     {runWithRequests(v1alpha1.PendingRequest{ID: "s3c1", Kind: "Errand"}), decision(toAnswer, "s3c1"), onItsWay, "s3c1"},
		"an answer to the only question":               {runWithRequests(limit, question), decision(toAnswer, ""), onItsWay, "s3c1"},
		"a grant of what another limit counts":         {runWithRequests(limit), grant("limit-steps-1", v1alpha1.Grant{Tokens: new(v1alpha1.Tokens("5k"))}), "False limit-steps-1 asks for more steps, and the grant has none: write spec.grant.steps, for example 20", "-"},
		"a grant of nothing":                           {runWithRequests(limit), decision(toGrant, "limit-steps-1"), "False limit-steps-1 asks for more steps, and the grant has none: write spec.grant.steps, for example 20", "-"},
		"a grant to a limit of tokens":                 {runWithRequests(v1alpha1.PendingRequest{ID: "limit-tokens-1", Kind: task.PendingLimit}), grant("limit-tokens-1", v1alpha1.Grant{Tokens: new(v1alpha1.Tokens("5k"))}), onItsWay, "limit-tokens-1"},
		"a grant to a limit of cost":                   {runWithRequests(v1alpha1.PendingRequest{ID: "limit-cost-1", Kind: task.PendingLimit}), grant("limit-cost-1", v1alpha1.Grant{Cost: new(v1alpha1.Money("1USD"))}), onItsWay, "limit-cost-1"},
		"a grant to a limit of a custom runner":        {runWithRequests(v1alpha1.PendingRequest{ID: "budget", Kind: task.PendingLimit}), grant("budget", v1alpha1.Grant{Cost: new(v1alpha1.Money("1USD"))}), onItsWay, "budget"},
		"a grant to the only limit":                    {runWithRequests(limit, question), grant("", steps), onItsWay, "limit-steps-1"},
		"an answer to no question":                     {runWithRequests(limit), decision(toAnswer, ""), "False Run x has no open request for the type Answer. To send the agent a message, use the type Message", "-"},
		"an answer to one of two":                      {runWithRequests(question, another), decision(toAnswer, ""), "False Run x waits for more than one Answer: name one in spec.request (s3c1, s3c2)", "-"},
		"a message":                                    {runWithRequests(), decision(toSay, ""), onItsWay, ""},
		"one that was acted on":                        {decided(runWithRequests(), "d", ""), decision(toAnswer, "s3c1"), "True The runner acted on it", "-"},
		"one that was refused":                         {decided(runWithRequests(question), "d", "too \x1b[2J\nlate"), decision(toAnswer, "s3c1"), "False The runner refused it: “too \\x1b[2J late”", "-"},
		"one that ended the Run":                       {finished(decided(runWithRequests(), "d", "")), decision(toAnswer, "s3c1"), "True The runner acted on it", "-"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := decisions.Evaluate(tc.run, tc.decision)
			if text := string(got.Applied) + " " + got.Message; !strings.HasPrefix(text, tc.want) {
				t.Errorf("Judge() = %q, want %q", text, tc.want)
			}
			if got.Deliver != (tc.request != "-") || got.Deliver && got.Request != tc.request {
				t.Errorf("deliver %t %q, want %q", got.Deliver, got.Request, tc.request)
			}
		})
	}
}

// With two requests that fit, what is on its way is for the one that it was sent to.
func TestADecisionOnItsWayIsNotSentToAnother(t *testing.T) {
	run := runWithRequests(v1alpha1.PendingRequest{ID: "s3c1", Kind: "Question"}, v1alpha1.PendingRequest{ID: "s3c2", Kind: "Question"})
	d := decision(v1alpha1.DecisionAnswer, "")
	d.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionUnknown, Message: "On its way to the runner"}}
	if got := decisions.Evaluate(run, d); got.Applied != metav1.ConditionUnknown || got.Deliver || got.Message != "On its way to the runner" {
		t.Errorf("%+v", got)
	}
	d.Status.Conditions[0].Message = "Waiting for something else"
	if got := decisions.Evaluate(run, d); got.Applied != metav1.ConditionFalse {
		t.Errorf("one that was never sent: %+v", got)
	}
}

func TestADecisionIsProtectedByTheRunThatOwnsIt(t *testing.T) {
	run := runWithRequests()
	for name, tc := range map[string]struct {
		change func(*v1alpha1.Decision)
		want   bool
	}{
		"its own Run":           {func(*v1alpha1.Decision) {}, true},
		"a Run of that name":    {func(d *v1alpha1.Decision) { d.OwnerReferences[0].UID = "earlier" }, false},
		"a Run of another name": {func(d *v1alpha1.Decision) { d.Spec.Run, d.OwnerReferences[0].Name = "y", "y" }, false},
		"another owner's name":  {func(d *v1alpha1.Decision) { d.OwnerReferences[0].Name = "y" }, false},
		"another kind of owner": {func(d *v1alpha1.Decision) { d.OwnerReferences[0].Kind = "Agent" }, false},
		"another group":         {func(d *v1alpha1.Decision) { d.OwnerReferences[0].APIVersion = "example.com/v1alpha1" }, false},
		"no owner":              {func(d *v1alpha1.Decision) { d.OwnerReferences = nil }, false},
	} {
		d := owned(decision(v1alpha1.DecisionMessage, ""), run.UID)
		tc.change(d)
		if got := decisions.IsProtected(run, d); got != tc.want {
			t.Errorf("%s: IsProtected() = %t", name, got)
		}
	}
}

func TestFinal(t *testing.T) {
	for status, want := range map[metav1.ConditionStatus]bool{"": false, metav1.ConditionUnknown: false, metav1.ConditionTrue: true, metav1.ConditionFalse: true} {
		d := decision(v1alpha1.DecisionMessage, "")
		if status != "" {
			d.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionApplied, Status: status}}
		}
		if decisions.IsFinal(d) != want {
			t.Errorf("Applied=%s: IsFinal() = %t", status, !want)
		}
	}
}

// durably makes a Run one whose journal outlives its pods.
func durably(run *v1alpha1.Run) *v1alpha1.Run {
	run.Status.Attempt.VolumeClaim = "x-workspace"
	return run
}

// left is one whose runner left to wait.
func left(run *v1alpha1.Run) *v1alpha1.Run {
	run.Status.Progress.Result = &v1alpha1.Result{Reason: "Waiting"}
	return run
}

// atFirst is one in its first attempt.
func atFirst(run *v1alpha1.Run) *v1alpha1.Run {
	run.Status.Attempt.Number, run.Status.Progress.Attempt = 1, 1
	return run
}

// next is one whose next attempt has not reported yet.
func next(run *v1alpha1.Run) *v1alpha1.Run {
	run.Status.Attempt.Number++
	return run
}

// A runner may write any schema into the status of its Run; validating an answer with it ends.
func TestAnswersToUnusableSchemasAreRefused(t *testing.T) {
	for name, raw := range map[string]string{
		"a reference to itself":      `{"allOf":[{"$ref":"#"}]}`,
		"references that double":     `{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},"b":{}}}`,
		"a reference in a condition": `{"type":"object","if":{"required":["a"]},"then":{"$ref":"#"}}`,
		"a large pattern":            `{"pattern":"` + strings.Repeat(".{1000}", 100) + `"}`,
		"no JSON":                    `{"type":`,
	} {
		for _, kind := range []string{task.PendingQuestion, task.PendingApproval} {
			run := runWithRequests(v1alpha1.PendingRequest{ID: "s1c1", Kind: kind, Schema: raw, Digest: "d1"})
			d := decision(map[string]v1alpha1.DecisionType{task.PendingQuestion: v1alpha1.DecisionAnswer, task.PendingApproval: v1alpha1.DecisionApprove}[kind], "s1c1")
			d.Spec.Value, d.Spec.Digest = `{"a":1}`, "d1"
			got := decisions.Evaluate(run, d)
			if got.Applied != metav1.ConditionFalse || !strings.Contains(got.Message, "Request s1c1 cannot be answered: its schema, which the runner wrote, cannot be used: “") {
				t.Errorf("%s of kind %s: %+v", name, kind, got)
			}
		}
	}
}

func TestJudgeOfApprovals(t *testing.T) {
	const onItsWay = "Unknown On its way to the runner"
	call := v1alpha1.PendingRequest{ID: "s3c1", Kind: "Approval", Digest: "d1"}
	ofLeads := v1alpha1.PendingRequest{ID: "s3c1", Kind: "Approval", Digest: "d1", Approvers: &v1alpha1.Approvers{Groups: []string{"leads", "owners"}}}
	ofAnn := v1alpha1.PendingRequest{ID: "s3c1", Kind: "Approval", Digest: "d1", Approvers: &v1alpha1.Approvers{Users: []string{"ann", "bob"}}}
	ofBoth := v1alpha1.PendingRequest{ID: "s3c1", Kind: "Approval", Digest: "d1", Approvers: &v1alpha1.Approvers{Groups: []string{"leads"}, Users: []string{"ann"}}}
	by := func(user string, groups ...string) func(*v1alpha1.DecisionSpec) {
		return func(s *v1alpha1.DecisionSpec) { s.Digest, s.By, s.Groups = "d1", user, groups }
	}
	bound := v1alpha1.PendingRequest{ID: "s3c1-" + strings.Repeat("d", 32), Kind: "Approval", Digest: strings.Repeat("d", 64)}
	forged := v1alpha1.PendingRequest{ID: bound.ID, Kind: "Approval", Digest: strings.Repeat("e", 64)}
	id := func(request string) func(*v1alpha1.DecisionSpec) {
		return func(s *v1alpha1.DecisionSpec) { s.Request = request }
	}
	both := func(request, sum string) func(*v1alpha1.DecisionSpec) {
		return func(s *v1alpha1.DecisionSpec) { s.Request, s.Digest = request, sum }
	}
	typed := v1alpha1.PendingRequest{ID: "s3c1", Kind: "Question", Schema: `{"type":"object","required":["env"],"properties":{"env":{"type":"string"}}}`}
	var eight []v1alpha1.PendingRequest
	for i := range 8 {
		eight = append(eight, v1alpha1.PendingRequest{ID: fmt.Sprintf("s9c%d", i), Kind: "Approval"})
	}
	says := func(kind v1alpha1.DecisionType, mod func(*v1alpha1.DecisionSpec)) *v1alpha1.Decision {
		d := decision(kind, "s3c1")
		d.Name = "x.s3c1"
		if mod != nil {
			mod(&d.Spec)
		}
		return d
	}
	digest := func(text string, groups ...string) func(*v1alpha1.DecisionSpec) {
		return func(s *v1alpha1.DecisionSpec) { s.Digest, s.Groups = text, groups }
	}
	value := func(text string) func(*v1alpha1.DecisionSpec) {
		return func(s *v1alpha1.DecisionSpec) { s.Value = text }
	}
	approve, deny, answers := v1alpha1.DecisionApprove, v1alpha1.DecisionDeny, v1alpha1.DecisionAnswer
	cases := map[string]struct {
		run      *v1alpha1.Run
		decision *v1alpha1.Decision
		want     string
	}{
		"an approval of what was shown":         {runWithRequests(call), says(approve, digest("d1")), onItsWay},
		"an approval of something else":         {runWithRequests(call), says(approve, digest("d2")), "False spec.digest is not the digest of request s3c1: another call was approved. Look at what it asks in status.progress.pending of the Run: its digest is d1"},
		"an approval by the id alone":           {runWithRequests(bound), says(approve, id(bound.ID)), onItsWay},
		"an approval by both":                   {runWithRequests(bound), says(approve, both(bound.ID, bound.Digest)), onItsWay},
		"an approval of another call":           {runWithRequests(bound), says(approve, id("s3c1-"+strings.Repeat("e", 32))), "False Run x does not wait for s3c1-" + strings.Repeat("e", 32) + "; it waits for " + bound.ID},
		"an approval with another digest":       {runWithRequests(bound), says(approve, both(bound.ID, strings.Repeat("d", 63)+"e")), "False spec.digest is not the digest of request " + bound.ID},
		"an id that ends in other digits":       {runWithRequests(forged), says(approve, id(forged.ID)), "False Request " + forged.ID + " can only be approved with its digest, because its id does not end in it"},
		"an id without digits":                  {runWithRequests(call), says(approve, digest("")), "False Request s3c1 can only be approved with its digest, because its id does not end in it. Look at what it asks in status.progress.pending of the Run, and set spec.digest to d1"},
		"a denial needs no digest":              {runWithRequests(call), says(deny, nil), onItsWay},
		"an answer to a call":                   {runWithRequests(call), says(answers, value("yes")), "False Request s3c1 is of kind Approval: use the type Approve or Deny, not Answer"},
		"an approval of a question":             {runWithRequests(typed), says(approve, digest("d1")), "False Request s3c1 is of kind Question: use the type Answer"},
		"in the name of a group that may":       {runWithRequests(ofLeads), says(approve, digest("d1", "devs", "owners")), onItsWay},
		"in the name of no group":               {runWithRequests(ofLeads), says(approve, digest("d1")), "False Request s3c1 can be decided only by members of leads, owners: set spec.groups to one of these groups that you are a member of"},
		"a denial is for the groups as well":    {runWithRequests(ofLeads), says(deny, digest("", "devs")), "False Request s3c1 can be decided only by members of leads, owners"},
		"by a user who is named":                {runWithRequests(ofAnn), says(approve, by("bob")), onItsWay},
		"by a user who is not":                  {runWithRequests(ofAnn), says(approve, by("eve", "ann", "bob")), "False Request s3c1 can be decided only by ann, bob: ask one of them"},
		"by a user with the name of a group":    {runWithRequests(ofLeads), says(approve, by("leads")), "False Request s3c1 can be decided only by members of leads, owners"},
		"by a user, where groups may as well":   {runWithRequests(ofBoth), says(approve, by("ann")), onItsWay},
		"for a group, where users may as well":  {runWithRequests(ofBoth), says(approve, by("eve", "leads")), onItsWay},
		"by neither":                            {runWithRequests(ofBoth), says(deny, by("eve", "devs")), "False Request s3c1 can be decided only by members of leads, and by ann: set spec.groups"},
		"an answer that fits":                   {runWithRequests(typed), says(answers, value(`{"env":"staging"}`)), onItsWay},
		"an answer that does not":               {runWithRequests(typed), says(answers, value(`{"env":1}`)), "False The value does not fit what s3c1 asks for"},
		"an answer that is no JSON":             {runWithRequests(typed), says(answers, value("staging")), "False The value does not fit what s3c1 asks for"},
		"to the attempt before, on a volume":    {durably(begun(runWithRequests(call), gen.Noon)), made(says(approve, digest("d1")), gen.Noon.Add(-time.Hour)), onItsWay},
		"while the runner is away":              {left(durably(runWithRequests(call))), says(approve, digest("d1")), onItsWay},
		"of nothing while the runner is away":   {left(durably(runWithRequests())), says(approve, digest("d1")), "False Run x does not wait for s3c1; it has no open request"},
		"while the next attempt begins":         {next(left(durably(runWithRequests(call)))), says(approve, digest("d1")), onItsWay},
		"of one that has not asked again":       {durably(runWithRequests()), says(approve, digest("d1")), "Unknown Waiting for Run x to make request s3c1 again: attempt 2 has not done so yet"},
		"of one that may ask for more":          {left(durably(runWithRequests(eight...))), says(approve, digest("d1")), "Unknown Waiting for Run x to show request s3c1: it has more requests than its status lists"},
		"of one that asks for the first time":   {atFirst(durably(runWithRequests())), says(approve, digest("d1")), "False Run x does not wait for s3c1"},
		"of one that cannot have asked":         {runWithRequests(), says(approve, digest("d1")), "False Run x does not wait for s3c1"},
		"while the next begins, without volume": {next(runWithRequests(call)), says(approve, digest("d1")), "False Run x has no open request"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := decisions.Evaluate(tc.run, tc.decision)
			if text := string(got.Applied) + " " + got.Message; !strings.HasPrefix(text, tc.want) {
				t.Errorf("Judge() = %q, want %q", text, tc.want)
			}
			if got.Deliver != (tc.want == onItsWay) {
				t.Errorf("deliver %t", got.Deliver)
			}
		})
	}
}
