package workflowrun

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/inputs"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/internal/run/objectcache"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// requestOf returns the id of the request of an approval.
func requestOf(node string) string { return "approval-" + node }

// defaultExpiry is how long an approval waits if the node sets no timeout.
const defaultExpiry = 168 * time.Hour

// approvalStates returns the states of the requested approvals, with the Decisions made so far.
func approvalStates(s state) (map[string]graph.ApprovalState, []v1alpha1.DecidedRequest) {
	out, decided := map[string]graph.ApprovalState{}, s.decided()
	for _, n := range s.nodes() {
		if n.Approval == nil {
			continue
		}
		done := decidedFor(decided, requestOf(n.Name))
		if done == nil {
			if done = decisionFor(s, requestOf(n.Name)); done != nil {
				decided = append(slices.Clip(decided), *done)
			}
		}
		switch asked := request(s.pending(), requestOf(n.Name)); {
		case done != nil && done.Type == v1alpha1.DecisionApprove:
			out[n.Name] = graph.Approved
		case done != nil:
			out[n.Name] = graph.Denied
		case asked == nil:
		case asked.ExpiresAt != nil && !s.now.Before(asked.ExpiresAt.Time):
			out[n.Name] = graph.Expired
		default:
			out[n.Name] = graph.Open
		}
	}
	return out, decided
}

// decisionFor returns the first Decision that answers a request, or nil. A Decision that was made after the request
// expired does not count, nor does a Decision that the Run does not own yet, because it could be deleted.
func decisionFor(s state, id string) *v1alpha1.DecidedRequest {
	asked := request(s.pending(), id)
	if asked == nil {
		return nil
	}
	for i := range s.decisions {
		d := &s.decisions[i]
		if decisions.IsFinal(d) || !decisions.IsProtected(s.run, d) || asked.ExpiresAt != nil && !d.CreationTimestamp.Before(asked.ExpiresAt) {
			continue
		}
		if v := decisions.Evaluate(s.run, d); v.Deliver && v.Request == id {
			return &v1alpha1.DecidedRequest{Name: d.Name, Request: id, Type: d.Spec.Type, Digest: asked.Digest}
		}
	}
	return nil
}

func decidedFor(decided []v1alpha1.DecidedRequest, id string) *v1alpha1.DecidedRequest {
	for i := range decided {
		if decided[i].Request == id && decided[i].Refused == "" {
			return &decided[i]
		}
	}
	return nil
}

func request(pending []v1alpha1.PendingRequest, id string) *v1alpha1.PendingRequest {
	for i := range pending {
		if pending[i].ID == id {
			return &pending[i]
		}
	}
	return nil
}

// pendingRequests returns the requests to users. Open requests stay unchanged, and new ones are added while there is
// room.
func (e *evaluator) pendingRequests(nodes []string) []v1alpha1.PendingRequest {
	var all, out []v1alpha1.PendingRequest
	for _, p := range e.pending() {
		if slices.ContainsFunc(nodes, func(node string) bool { return requestOf(node) == p.ID }) {
			all = append(all, p)
		}
	}
	for _, node := range nodes {
		if len(all) < task.MaxPending && request(all, requestOf(node)) == nil {
			p, _ := e.newRequest(node, e.run.UID)
			all = append(all, p)
		}
	}
	room := task.MaxAsked
	for _, p := range all {
		size := decisions.Size(p)
		if len(out) < task.MaxPending && size <= room {
			out, room = append(out, p), room-size
		}
	}
	return out
}

// newRequest returns a new request. Users can decide even if its message cannot be computed; then the error is not nil.
func (e *evaluator) newRequest(node string, asker types.UID) (v1alpha1.PendingRequest, error) {
	n := e.program.Node(node).Approval
	text, err := e.program.Message(node, e.current())
	if err != nil {
		text = fmt.Sprintf("Its message cannot be computed (%v). %s", err, n.Message)
	}
	wait := durationOf(&n.ExpiresAfter)
	if wait == 0 {
		wait = defaultExpiry
	}
	at, until := metav1.NewTime(e.now), metav1.NewTime(e.now.Add(wait))
	p := v1alpha1.PendingRequest{
		ID:        requestOf(node),
		Kind:      task.PendingApproval,
		Tool:      "approval",
		Question:  task.Cut(text, task.MaxMessage),
		Approvers: n.Approvers,
		AskedAt:   &at,
		ExpiresAt: &until,
	}
	if n.Input != nil {
		p.Schema = string(inputs.Schema(n.Input))
	}
	p.Digest = digest(asker, node, text, p)
	return p, err
}

// digest returns the digest of a request, which a Decision repeats. It is different for each Run that asks and each text.
func digest(asker types.UID, node, text string, p v1alpha1.PendingRequest) string {
	var groups []string
	parts := []any{"approval", asker, node, text, groups, p.Schema}
	if a := p.Approvers; a != nil {
		parts[4] = a.Groups
		if len(a.Users) > 0 {
			parts = append(parts, a.Users)
		}
	}
	all, _ := json.Marshal(parts) // strings always encode
	return task.Hash(all)
}

// reusedApprovals returns the approvals of the Run that this Run retries for nodes that ask now, and the Decisions that
// this Run must own before: until then the nodes wait.
func (e *evaluation) reusedApprovals(nodes []string) (reused []v1alpha1.DecidedRequest, own []*v1alpha1.Decision) {
	for _, node := range nodes {
		if recordedState(e.state, node).State != graph.Waiting {
			continue // it asked before
		}
		done, d := e.earlierApproval(node)
		switch {
		case d == nil:
		case decisions.ProvesReuse(e.run, d, *done):
			reused = append(reused, *done)
		default:
			own = append(own, d)
		}
	}
	return reused, own
}

// earlierApproval returns the approval of the same request in the Run that this Run retries, with its Decision, or nil.
// The digest of the request, computed as for the Run that asked, compares node, message, approvers and schema.
func (e *evaluation) earlierApproval(node string) (*v1alpha1.DecidedRequest, *v1alpha1.Decision) {
	if !e.restsOnSource(node) || e.source.run.Status.Progress == nil {
		return nil, nil
	}
	done := decidedFor(e.source.run.Status.Progress.Decided, requestOf(node))
	if done == nil {
		return nil, nil
	}
	at := slices.IndexFunc(e.decisions, func(d v1alpha1.Decision) bool { return d.Name == done.Name })
	if at < 0 {
		return nil, nil
	}
	d := &e.decisions[at]
	if !decisions.CanReuse(e.run, d, *done) || !decisions.IsOwner(e.source.run.UID, d) || len(d.OwnerReferences) >= objectcache.MaxOwners ||
		!meta.IsStatusConditionTrue(d.Status.Conditions, v1alpha1.ConditionApplied) {
		return nil, nil
	}
	if same, err := e.evaluator.newRequest(node, decisions.OwnerUID(d)); err != nil || same.Digest != done.Digest {
		return nil, nil
	}
	return done, d
}

// approvalOutput returns the output of a decided approval.
func (e *evaluator) approvalOutput(node string) json.RawMessage {
	type output struct {
		Approved bool            `json:"approved"`
		By       string          `json:"by"`
		At       string          `json:"at"`
		Reason   string          `json:"reason"`
		Input    json.RawMessage `json:"input,omitempty"`
	}
	out := output{At: e.now.UTC().Format(time.RFC3339), Reason: "no Decision was made in time"}
	if ended := nodeStatus(e.run.Status.Nodes, node); ended != nil && ended.FinishedAt != nil {
		out.At = ended.FinishedAt.UTC().Format(time.RFC3339)
	}
	if d := e.decision(node); d != nil {
		out = output{
			Approved: d.Spec.Type == v1alpha1.DecisionApprove,
			By:       d.Spec.By,
			At:       d.CreationTimestamp.UTC().Format(time.RFC3339),
			Reason:   d.Spec.Reason,
		}
		if in := e.program.Node(node).Approval.Input; in != nil && json.Valid([]byte(d.Spec.Value)) {
			out.Input = schema.Fill(inputs.Schema(in), json.RawMessage(d.Spec.Value))
		}
	}
	data, _ := json.Marshal(out) // what is valid encodes
	return data
}

// decision returns the Decision that decided an approval, or nil.
func (e *evaluator) decision(node string) *v1alpha1.Decision {
	_, decided := approvalStates(e.state)
	done := decidedFor(decided, requestOf(node))
	if done == nil {
		return nil
	}
	for i := range e.decisions {
		if e.decisions[i].Name == done.Name {
			return &e.decisions[i]
		}
	}
	return nil
}

// denialReason describes who denied an approval, and why.
func (e *evaluator) denialReason(node string) string {
	d := e.decision(node)
	switch {
	case d == nil:
		return "no Decision was made in time"
	case d.Spec.Reason == "":
		return "denied by " + d.Spec.By
	}
	return fmt.Sprintf("denied by %s: %s", d.Spec.By, d.Spec.Reason)
}

// expiresIn returns how long the first open request still waits; 0: there is none.
func expiresIn(s state, pending []v1alpha1.PendingRequest) time.Duration {
	first := time.Duration(0)
	for _, p := range pending {
		if p.ExpiresAt != nil {
			first = earlier(first, max(p.ExpiresAt.Sub(s.now), time.Second))
		}
	}
	return first
}
