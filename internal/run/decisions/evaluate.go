// Package decisions decides whether a Decision is applied or refused, from the requests of its Run and the reports of
// the runner, and reads the Decisions on a Run. The controller of Decisions writes the outcome, and the controllers of
// Runs deliver Decisions; both use these rules.
package decisions

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/statuspatch"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// An Outcome is the outcome of a Decision: Unknown until it is applied or refused.
type Outcome struct {
	Applied metav1.ConditionStatus
	Message string
	// Deliver is set if the runner waits for the Decision. Request is then the request that
	// it answers, even if the Decision does not name it.
	Deliver bool
	Request string
}

func waiting(format string, args ...any) Outcome {
	return Outcome{Applied: metav1.ConditionUnknown, Message: fmt.Sprintf(format, args...)}
}

func refused(format string, args ...any) Outcome {
	return Outcome{Applied: metav1.ConditionFalse, Message: fmt.Sprintf(format, args...)}
}

// IsFinal reports whether a Decision is applied or refused.
func IsFinal(d *v1alpha1.Decision) bool {
	c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionApplied)
	return c != nil && c.Status != metav1.ConditionUnknown
}

// Owners returns the Runs that own a Decision: the Run that it is for, and Runs that retry that Run and reuse it. Each
// may have been deleted, and another Run may have its name now.
func Owners(d *v1alpha1.Decision) []metav1.OwnerReference {
	var out []metav1.OwnerReference
	for _, o := range d.OwnerReferences {
		if strings.HasPrefix(o.APIVersion, v1alpha1.GroupVersion.Group+"/") && o.Kind == "Run" {
			out = append(out, o)
		}
	}
	return out
}

// OwnerUID returns the UID of the Run that a Decision is for, or an empty one if that Run does not own it.
func OwnerUID(d *v1alpha1.Decision) types.UID {
	for _, o := range Owners(d) {
		if o.Name == d.Spec.Run {
			return o.UID
		}
	}
	return ""
}

// IsOwner reports whether the Run with a UID owns a Decision.
func IsOwner(uid types.UID, d *v1alpha1.Decision) bool {
	return slices.ContainsFunc(Owners(d), func(o metav1.OwnerReference) bool { return o.UID == uid })
}

// isForEarlier reports whether a Decision is for an earlier Run of the same name: Runs own it, but this Run does not.
func isForEarlier(run *v1alpha1.Run, d *v1alpha1.Decision) bool {
	return len(Owners(d)) > 0 && !IsOwner(run.UID, d)
}

// IsProtected reports whether a Decision is for a Run and owned by it. An admission policy keeps such a Decision from
// being deleted before the Run, so that it can be acted on and its record remains.
func IsProtected(run *v1alpha1.Run, d *v1alpha1.Decision) bool {
	return d.Spec.Run == run.Name && OwnerUID(d) == run.UID
}

// AddOwner makes a Run an owner of a Decision, so that it is not deleted before the Run. If the Decision was deleted, it
// does nothing.
func AddOwner(ctx context.Context, c client.Client, d *v1alpha1.Decision, run *v1alpha1.Run) error {
	patch, err := json.Marshal(addOwner(d, metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: run.Name, UID: run.UID,
	}))
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	if err := c.Patch(ctx, d.DeepCopy(), client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("making Run %s the owner of Decision %s: %w", run.Name, d.Name, err))
	}
	return nil
}

// addOwner returns a JSON patch that adds an owner to an object. It does not repeat existing owners, because the cache
// may have only some of them; but if an object has any, the cache has at least one.
func addOwner(s metav1.Object, owner metav1.OwnerReference) []statuspatch.Op {
	const path = "/metadata/ownerReferences"
	locked := statuspatch.Op{Op: "add", Path: "/metadata/resourceVersion", Value: s.GetResourceVersion()}
	if len(s.GetOwnerReferences()) == 0 {
		return []statuspatch.Op{locked, {Op: "add", Path: path, Value: []metav1.OwnerReference{owner}}}
	}
	return []statuspatch.Op{locked, {Op: "add", Path: path + "/-", Value: owner}}
}

// Evaluate returns the outcome of a Decision on a Run; run is nil if the Run does not exist.
func Evaluate(run *v1alpha1.Run, d *v1alpha1.Decision) Outcome {
	if run == nil || !run.DeletionTimestamp.IsZero() {
		return refused("Run %q not found in namespace %s. Delete the Decision, and create one with the name of a Run in spec.run", d.Spec.Run, d.Namespace)
	}
	if isForEarlier(run, d) {
		return refused("The Decision is for an earlier Run %s, which was deleted", run.Name)
	}
	if v, acted := actedOn(run, d); acted {
		return v
	}
	if run.Status.CompletionTime != nil {
		return refused("Run %s has finished and takes no more decisions. Create another Run", run.Name)
	}
	if run.Spec.Workflow != "" {
		return toWorkflow(run, d)
	}
	if d.Spec.Type == v1alpha1.DecisionMessage {
		if !reported(run) {
			return waiting("Waiting for the runner of Run %s to report", run.Name)
		}
		return onItsWay("")
	}
	return toRequests(run, d)
}

// toRequests evaluates a Decision on a request. If the journal is in the pod, another attempt may use the same id for
// another request, so a Decision is for one attempt only.
func toRequests(run *v1alpha1.Run, d *v1alpha1.Decision) Outcome {
	switch {
	case durable(run) && run.Status.Progress != nil:
	case run.Status.Attempt == nil && run.Status.Progress != nil:
		return waiting("Waiting for the operator to record the attempt of Run %s", run.Name)
	case !reported(run):
		return refused("Run %s has no open request: its runner has not reported yet. To send the agent a message, use the type Message", run.Name)
	case d.CreationTimestamp.Before(&run.Status.Attempt.StartedAt):
		return refused("The Decision was made before attempt %d of Run %s began: requests of earlier attempts are not open any more; %s", run.Status.Attempt.Number, run.Name, listRequests(run))
	}
	if d.Spec.Request == "" {
		return toTheOnly(run, d)
	}
	for _, p := range run.Status.Progress.Pending {
		if p.ID == d.Spec.Request {
			return toRequest(run, p, d)
		}
	}
	if mayRepeatRequests(run) {
		return waiting("Waiting for Run %s to make request %s again: attempt %d has not done so yet. If it never does, the Decision is refused when the Run finishes; %s", run.Name, d.Spec.Request, run.Status.Attempt.Number, listRequests(run))
	}
	if durable(run) && full(run.Status.Progress.Pending) {
		return waiting("Waiting for Run %s to show request %s: it has more requests than its status lists; %s", run.Name, d.Spec.Request, listRequests(run))
	}
	return refused("Run %s does not wait for %s; %s", run.Name, d.Spec.Request, listRequests(run))
}

// durable reports whether the requests of a Run have the same ids in all attempts.
func durable(run *v1alpha1.Run) bool {
	return run.Status.Attempt != nil && run.Status.Attempt.VolumeClaim != ""
}

// mayRepeatRequests reports whether the current attempt resumes from a journal, so that it may repeat a request. Its
// approvers are known only then, so nothing is delivered before.
func mayRepeatRequests(run *v1alpha1.Run) bool {
	return durable(run) && run.Status.Attempt.Number > 1 && !released(run)
}

// Size returns how much of task.MaxAsked a request takes.
func Size(p v1alpha1.PendingRequest) int {
	asked := task.Pending{Question: p.Question, Args: p.Args, Schema: p.Schema, DisplayDigest: p.DisplayDigest, Approvers: (*task.Approvers)(p.Approvers)}
	return asked.Size()
}

// full reports whether a Run may have more requests than its status can hold.
func full(pending []v1alpha1.PendingRequest) bool {
	size := 0
	for _, p := range pending {
		size += Size(p)
	}
	return len(pending) == task.MaxPending || size > task.MaxAsked/2-task.DisplaySize-task.UsersSize
}

// released reports whether the runner of the current attempt ended to wait, so that all its requests are known. If it
// ended because the Run was paused, there may be more.
func released(run *v1alpha1.Run) bool {
	p := run.Status.Progress
	return reported(run) && p.Result != nil && !p.Result.Committed && p.Result.Reason == string(task.ReasonWaiting)
}

func onItsWay(request string) Outcome {
	return Outcome{Applied: metav1.ConditionUnknown, Message: underway, Deliver: true, Request: request}
}

const underway = "On its way to the runner"

// isDelivered reports whether a Decision was delivered before. If it names no request, only one request was open then,
// and new ones do not change that.
func isDelivered(d *v1alpha1.Decision) bool {
	c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionApplied)
	return c != nil && c.Status == metav1.ConditionUnknown && c.Message == underway
}

// actedOn returns the outcome that the runner reports for a Decision; false: it reports none. Before the attempt is
// recorded it is not known whose runner reports.
func actedOn(run *v1alpha1.Run, d *v1alpha1.Decision) (Outcome, bool) {
	if run.Status.Progress == nil || run.Status.Attempt == nil && run.Spec.Workflow == "" {
		return Outcome{}, false
	}
	for _, done := range run.Status.Progress.Decided {
		switch {
		case done.Name != d.Name:
		case done.Refused != "":
			return refused("The runner refused it: %s", untrusted.Quote(done.Refused, task.MaxRefused)), true
		case run.Spec.Workflow != "":
			return Outcome{Applied: metav1.ConditionTrue, Message: fmt.Sprintf("Run %s acted on it", run.Name)}, true
		default:
			return Outcome{Applied: metav1.ConditionTrue, Message: "The runner acted on it"}, true
		}
	}
	return Outcome{}, false
}

// reported reports whether the requests of the current attempt are known.
func reported(run *v1alpha1.Run) bool {
	a, p := run.Status.Attempt, run.Status.Progress
	return a != nil && p != nil && p.Attempt == a.Number
}

// toTheOnly evaluates a Decision that names no request.
func toTheOnly(run *v1alpha1.Run, d *v1alpha1.Decision) Outcome {
	var found []v1alpha1.PendingRequest
	var ids []string
	for _, p := range run.Status.Progress.Pending {
		if slices.Contains(fitting[p.Kind], d.Spec.Type) {
			found, ids = append(found, p), append(ids, p.ID)
		}
	}
	switch {
	case len(ids) == 1:
		return toRequest(run, found[0], d)
	case len(ids) > 1 && isDelivered(d):
		return Outcome{Applied: metav1.ConditionUnknown, Message: underway}
	case len(ids) == 0 && mayRepeatRequests(run):
		return waiting("Waiting for Run %s to make its requests again: attempt %d has not done so yet. If it never does, the Decision is refused when the Run finishes", run.Name, run.Status.Attempt.Number)
	case len(ids) == 0:
		return refused("Run %s has no open request for the type %s. To send the agent a message, use the type Message", run.Name, d.Spec.Type)
	default:
		return refused("Run %s waits for more than one %s: name one in spec.request (%s)", run.Name, d.Spec.Type, strings.Join(ids, ", "))
	}
}

// fitting are the types of Decisions on each kind of request.
var fitting = map[string][]v1alpha1.DecisionType{
	task.PendingApproval: {v1alpha1.DecisionApprove, v1alpha1.DecisionDeny},
	task.PendingQuestion: {v1alpha1.DecisionAnswer},
	task.PendingLimit:    {v1alpha1.DecisionGrant},
}

// toRequest evaluates a Decision on one request: its type, its digest, the groups of its
// author, and its value.
func toRequest(run *v1alpha1.Run, p v1alpha1.PendingRequest, d *v1alpha1.Decision) Outcome {
	want, known := fitting[p.Kind]
	switch {
	case p.Kind == task.PendingDelegation:
		return refused("Request %s is for a child Run of Agent %s, which the operator creates: it needs no Decision. See kubectl get runs -l %s=%s", p.ID, untrusted.Words(p.Agent, task.MaxAsker), v1alpha1.LabelParentRun, d.Spec.Run)
	case known && !slices.Contains(want, d.Spec.Type):
		return refused("Request %s is of kind %s: use the type %s, not %s", p.ID, p.Kind, either(want), d.Spec.Type)
	case d.Spec.Type == v1alpha1.DecisionApprove && !IsApproval(run, d, p.ID, p.Digest):
		return refused("%s", mismatch(p, d))
	case !p.Approvers.Include(d.Spec.By, d.Spec.Groups):
		return refused("Request %s can be decided only by %s: %s", p.ID, ApproverNames(p.Approvers), adviceFor(p.Approvers))
	}
	if problem := Misfit(p, d.Spec); problem != "" {
		return refused("%s", problem)
	}
	return onItsWay(p.ID)
}

// Misfit returns why the value or the grant of a Decision does not fit a request; empty if it fits.
func Misfit(p v1alpha1.PendingRequest, d v1alpha1.DecisionSpec) string {
	approves := d.Type == v1alpha1.DecisionApprove
	switch {
	case d.Type == v1alpha1.DecisionGrant:
		return grantMisfit(p, d.Grant)
	case !approves && d.Type != v1alpha1.DecisionAnswer:
		return ""
	case p.Schema == "" && approves && d.Value != "":
		return fmt.Sprintf("%s takes no value with an Approve: remove spec.value", p.ID)
	case p.Schema == "":
		return ""
	}
	validator, err := schema.Compile(json.RawMessage(p.Schema))
	switch {
	case err != nil:
		return fmt.Sprintf("Request %s cannot be answered: its schema, which the runner wrote, cannot be used: %s. Stop the Run; in a custom runner, ask with a schema that has no references and no large patterns", p.ID, untrusted.Quote(err.Error(), task.MaxArgs/2))
	case d.Value == "":
		return fmt.Sprintf("%s asks for a value with the Approve: write in spec.value JSON for the schema %s", p.ID, schemaOf(p))
	}
	if err := validator.Validate(schema.Fill(json.RawMessage(p.Schema), json.RawMessage(d.Value))); err != nil {
		return fmt.Sprintf("The value does not fit what %s asks for: %s. It must be JSON for the schema %s", p.ID, untrusted.Quote(err.Error(), task.MaxArgs/2), schemaOf(p))
	}
	return ""
}

// grantMisfit returns why a grant does not raise the limit that a request is about; empty if it does,
// or if the id does not name the limit, as one of a custom runner.
func grantMisfit(p v1alpha1.PendingRequest, g *v1alpha1.Grant) string {
	if g == nil {
		g = &v1alpha1.Grant{}
	}
	name, example := Grantable(p.ID)
	isNamed := strings.HasPrefix(p.ID, "limit-"+name+"-")
	if !isNamed || map[string]bool{"steps": g.Steps != nil, "tokens": g.Tokens != nil, "cost": g.Cost != nil}[name] {
		return ""
	}
	return fmt.Sprintf("%s asks for more %s, and the grant has none: write spec.grant.%s, for example %s", p.ID, name, name, example)
}

// schemaOf quotes the schema of the value for a request.
func schemaOf(p v1alpha1.PendingRequest) string { return untrusted.Quote(p.Schema, task.MaxArgs/2) }

// ApproverNames names the approvers of a request.
func ApproverNames(a *v1alpha1.Approvers) string {
	var out []string
	if len(a.Groups) > 0 {
		out = append(out, "members of "+untrusted.Words(strings.Join(a.Groups, ", "), task.MaxArgs/2))
	}
	if len(a.Users) > 0 {
		out = append(out, untrusted.Words(strings.Join(a.Users, ", "), task.MaxArgs/2))
	}
	return strings.Join(out, ", and by ")
}

// adviceFor returns what a user who is not one of the approvers can do.
func adviceFor(a *v1alpha1.Approvers) string {
	if len(a.Groups) == 0 {
		return "ask one of them"
	}
	return "set spec.groups to one of these groups that you are a member of"
}

func either(kinds []v1alpha1.DecisionType) string {
	var out []string
	for _, t := range kinds {
		out = append(out, string(t))
	}
	return strings.Join(out, " or ")
}

// listRequests lists the requests of a Run that users can answer.
func listRequests(run *v1alpha1.Run) string {
	var ids []string
	if run.Status.Progress != nil {
		for _, p := range forUsers(run.Status.Progress.Pending) {
			ids = append(ids, p.ID)
		}
	}
	if len(ids) == 0 {
		return "it has no open request"
	}
	return "it waits for " + strings.Join(ids, ", ")
}

// IsApproval reports whether an approval is for the request with an id and a digest: it names the id, and the digest is
// the one in the approval or at the end of the id. A node of a workflow is approved once and always makes the same
// request, so its id is enough.
func IsApproval(run *v1alpha1.Run, d *v1alpha1.Decision, id, sum string) bool {
	if d.Spec.Digest != "" && d.Spec.Digest != sum {
		return false
	}
	return d.Spec.Request == id && (d.Spec.Digest != "" || run.Spec.Workflow != "" || digest.IsBound(id, sum))
}

// mismatch returns why an approval is not of the request that it names.
func mismatch(p v1alpha1.PendingRequest, d *v1alpha1.Decision) string {
	const look = "Look at what it asks in status.progress.pending of the Run"
	if d.Spec.Digest == "" {
		return fmt.Sprintf("Request %s can only be approved with its digest, because its id does not end in it. %s, and set spec.digest to %s", p.ID, look, p.Digest)
	}
	return fmt.Sprintf("spec.digest is not the digest of request %s: another call was approved. %s: its digest is %s", p.ID, look, p.Digest)
}

// toWorkflow evaluates a Decision on the Run of a workflow. It has no runner: the status has a
// request from when an approval node is reached until it is decided, and the operator applies
// the Decision.
func toWorkflow(run *v1alpha1.Run, d *v1alpha1.Decision) Outcome {
	if d.Spec.Type == v1alpha1.DecisionMessage {
		return refused("Run %s is of a workflow, which has no agent that could read a message: create the Decision for the Run of a node (kubectl get runs -l %s=%s)", run.Name, v1alpha1.LabelWorkflowRun, run.Name)
	}
	if d.Spec.Type != v1alpha1.DecisionApprove && d.Spec.Type != v1alpha1.DecisionDeny {
		return refused("Run %s is of a workflow, which takes only Approve and Deny, not %s: questions and limits belong to the Runs of its nodes (kubectl get runs -l %s=%s); %s", run.Name, d.Spec.Type, v1alpha1.LabelWorkflowRun, run.Name, listRequests(run))
	}
	if run.Status.Progress == nil {
		return refused("Run %s does not wait for %s: it has not begun", run.Name, d.Spec.Request)
	}
	for _, p := range run.Status.Progress.Pending {
		if p.ID == d.Spec.Request {
			return toApproval(run, p, d)
		}
	}
	return refused("Run %s does not wait for %s; %s", run.Name, d.Spec.Request, listRequests(run))
}

// toApproval evaluates a Decision on an approval node of a workflow.
func toApproval(run *v1alpha1.Run, p v1alpha1.PendingRequest, d *v1alpha1.Decision) Outcome {
	if d.Spec.Scope == v1alpha1.ScopeRun {
		return refused("%s is asked once, so scope: Run means nothing: remove spec.scope", p.ID)
	}
	v := toRequest(run, p, d)
	if v.Deliver {
		v.Message = "On its way to Run " + run.Name
		v.Applied = metav1.ConditionUnknown
	}
	return v
}
