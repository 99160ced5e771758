package run

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// plain matches an id of a request that can be used in names unchanged.
var plain = regexp.MustCompile(`^[a-z0-9]+([-.][a-z0-9]+)*$`)

// childNames returns the possible names of the child Run of a request: a readable one, and one with a hash if the first
// is taken or too long. The names have no dots: otherwise a request of the child could have the same
// <run>.<request> as a request of its parent.
func childNames(run *v1alpha1.Run, id string) []string {
	hashed := children.HashedName(run.Name, string(run.UID)+"/"+id, 16)
	if name := run.Name + "-" + strings.ReplaceAll(id, ".", "-"); plain.MatchString(id) && len(name) <= children.MaxName {
		return []string{name, hashed}
	}
	return []string{hashed}
}

// requestLabel returns the id of a request as the value of a label. Custom runners may send any id.
func requestLabel(id string) string {
	if plain.MatchString(id) {
		return snapshot.Label(id)
	}
	return task.Hash([]byte(id))[:16]
}

// childMark returns the mark with which a Run records that the child of a request was created: six characters with 36
// bits of a hash, because a status may have many.
func childMark(label string) string {
	sum := sha256.Sum256([]byte(label))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:6]
}

// childMarks returns the marks of all children that were created.
func childMarks(s state, p plan) []string {
	out := slices.Clone(s.run.Status.Internal.Delegated)
	add := func(child *v1alpha1.Run) {
		if m := childMark(child.Labels[v1alpha1.LabelRequest]); !slices.Contains(out, m) && len(out) < maxChildren {
			out = append(out, m)
		}
	}
	for i := range s.children {
		add(&s.children[i])
	}
	if p.child != nil {
		add(p.child)
	}
	return out
}

// childOf returns the child Run for a request. It gets the labels of its parent, so that selectors and Kueue match it,
// except those of tools that manage the parent.
func childOf(s state, d delegation, limits *v1alpha1.Limits) *v1alpha1.Run {
	labels := map[string]string{}
	maps.Copy(labels, s.run.Labels)
	maps.DeleteFunc(labels, func(k, _ string) bool { return runnerpod.IsForeignLabel(k) })
	labels[v1alpha1.LabelParentRun] = s.run.Name
	labels[v1alpha1.LabelRequest] = requestLabel(d.ID)
	prompt, input, _ := childInput(d, delegationTool(s, d.Agent))
	return &v1alpha1.Run{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       s.run.Namespace,
			Name:            childNames(s.run, d.ID)[0],
			Labels:          labels,
			Annotations:     map[string]string{v1alpha1.AnnotationDigest: d.Digest, v1alpha1.AnnotationRootRun: runstatus.RootUID(s.run)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.run, v1alpha1.GroupVersion.WithKind("Run"))},
		},
		Spec: v1alpha1.RunSpec{
			Agent:  d.Agent,
			Prompt: prompt,
			Input:  input,
			User:   s.run.Spec.User,
			Limits: limits,
		},
	}
}

// isChild reports whether a Run was created for a request of another. An admission policy lets
// only the operator create such Runs, except for backup tools.
func isChild(child, parent *v1alpha1.Run) bool {
	_, restored := runstatus.Restored(child)
	return !restored && metav1.IsControlledBy(child, parent) && child.Labels[v1alpha1.LabelParentRun] == parent.Name && child.Labels[v1alpha1.LabelRequest] != ""
}

// childRuns reads and creates the child Runs of agents.
type childRuns struct {
	client client.Client
	live   client.Reader // the API server itself, not the cache
}

// observe reads the child Runs of a Run that may have some, and the Agents of requested child Runs.
func (c childRuns) observe(ctx context.Context, s *state) error {
	if len(s.run.Status.Internal.Delegated) == 0 && (s.revision == nil || !delegates(s.revision.Snapshot)) {
		return nil
	}
	var list v1alpha1.RunList
	if err := c.client.List(ctx, &list, client.InNamespace(s.run.Namespace), client.MatchingLabels{v1alpha1.LabelParentRun: s.run.Name}); err != nil {
		return fmt.Errorf("listing child Runs: %w", err)
	}
	s.children = slices.DeleteFunc(list.Items, func(child v1alpha1.Run) bool { return !isChild(&child, s.run) })
	for i := range s.children {
		s.children[i].Status.Progress = untrusted.Progress(s.children[i].Status.Progress)
	}
	slices.SortFunc(s.children, func(a, b v1alpha1.Run) int { return strings.Compare(a.Name, b.Name) })
	s.agents = map[string]*v1alpha1.Agent{}
	for _, d := range s.delegations(s.run.Status.Progress) {
		if err := c.observeDelegation(ctx, s, d); err != nil {
			return err
		}
	}
	return nil
}

// observeDelegation checks whether a child Run still exists or, if it was never created, reads its Agent. Only the API
// server itself, not the cache, can confirm that a child Run no longer exists.
func (c childRuns) observeDelegation(ctx context.Context, s *state, d delegation) error {
	if d.gone {
		for _, name := range childNames(s.run, d.ID) {
			var found v1alpha1.Run
			err := c.live.Get(ctx, client.ObjectKey{Namespace: s.run.Namespace, Name: name}, &found)
			switch {
			case apierrors.IsNotFound(err):
			case err != nil:
				return fmt.Errorf("getting Run %s: %w", name, err)
			case isChild(&found, s.run):
				found.Status.Progress = untrusted.Progress(found.Status.Progress)
				s.children = append(s.children, found)
				return nil
			}
		}
		return nil
	}
	if _, known := s.agents[d.Agent]; known || d.child != nil || delegationTool(*s, d.Agent) == nil {
		return nil
	}
	var agent v1alpha1.Agent
	err := c.client.Get(ctx, client.ObjectKey{Namespace: s.run.Namespace, Name: d.Agent}, &agent)
	if apierrors.IsNotFound(err) {
		return nil // its Run will wait for it
	}
	if err != nil {
		return fmt.Errorf("getting Agent %s: %w", d.Agent, err)
	}
	s.agents[d.Agent] = &agent
	return nil
}

// childStateChanges stops children when their parent ends or is stopped, and pauses them with
// it.
func childStateChanges(s state, p plan) []children.StateChange {
	if !s.run.DeletionTimestamp.IsZero() || p.deleteRun {
		return nil // owner references do the rest
	}
	stop := p.settles() || runstatus.IsFinished(s.run) || s.run.Spec.DesiredState == v1alpha1.DesiredStopped
	var out []children.StateChange
	for i := range s.children {
		child := &s.children[i]
		change, needed := children.Pause(child, wantsPause(s))
		if stop || isUnwanted(s, child) {
			change, needed = children.Stop(child)
		}
		if needed {
			out = append(out, change)
		}
	}
	return out
}

// isUnwanted reports whether a child should stop: the call that requested it was cancelled, or it was requested by an
// earlier attempt and the current attempt uses the id for another request.
func isUnwanted(s state, child *v1alpha1.Run) bool {
	for _, d := range s.delegations(s.progress()) {
		if d.child == child {
			return d.Cancelled || child.Annotations[v1alpha1.AnnotationDigest] != d.Digest
		}
	}
	return false
}

// pendingChildResults returns the results of child Runs that the runner waits for: as many as fit, at least one.
// Results of refused requests that were sent before are kept.
func pendingChildResults(s state, p *v1alpha1.RunProgress, told []task.Child) []task.Child {
	var out []task.Child
	size := 0
	for _, d := range s.delegations(p) {
		c, known := childResult(s, d)
		if i := slices.IndexFunc(told, func(t task.Child) bool { return t.Request == d.ID && t.Run == "" }); i >= 0 && d.child == nil {
			c, known = told[i], true
		}
		if !known {
			continue
		}
		size += len(runnerpod.ToJSON(c))
		if len(out) > 0 && size > task.MaxChildSignals {
			return out
		}
		out = append(out, c)
	}
	return out
}

// childResult returns the result for a request; false: there is none yet.
func childResult(s state, d delegation) (task.Child, bool) {
	if d.gone {
		name := childNames(s.run, d.ID)[0]
		return task.Child{Request: d.ID, Run: name, Reason: v1alpha1.NodeReasonLost, Message: fmt.Sprintf("Run %s was deleted before its result was read", name)}, true
	}
	if why := delegationProblem(s, d); why != "" {
		return task.Child{Request: d.ID, Message: why}, true
	}
	if d.child == nil || !runstatus.IsFinished(d.child) {
		return task.Child{}, false
	}
	is := runstatus.OutcomeOf(d.child.Status)
	c := task.Child{Request: d.ID, Run: d.child.Name, Reason: task.Reason(is.Reason), Message: is.Message}
	p := d.child.Status.Progress
	if p == nil {
		return c, true
	}
	c.Usage = task.Usage(p.Usage)
	if p.Result != nil {
		c.Text, c.Output = p.Result.Text, p.Result.Output
	}
	return c, true
}

// equalChildren reports whether two lists have the same results.
func equalChildren(a, b []task.Child) bool {
	return len(a) == len(b) && bytes.Equal(runnerpod.ToJSON(a), runnerpod.ToJSON(b))
}

// childrenMessage names the child Runs that the Run waits for.
func childrenMessage(s state) string {
	var open []string
	for _, d := range s.delegations(s.progress()) {
		switch _, known := childResult(s, d); {
		case known, childWasRefused(s, d):
		case d.child != nil:
			open = append(open, fmt.Sprintf("Run %s of Agent %s (%s)", d.child.Name, d.child.Spec.Agent, reasonOf(d.child)))
		default:
			open = append(open, childNotCreatedMessage(s, d))
		}
	}
	switch len(open) {
	case 0:
		return "Waiting for the runner to read the results of its child Runs"
	case 1:
		return "Waiting for " + open[0]
	}
	return fmt.Sprintf("Waiting for %s and %d more", open[0], len(open)-1)
}

// childNotCreatedMessage describes what the creation of a child Run waits for.
func childNotCreatedMessage(s state, d delegation) string {
	agent := untrusted.Words(d.Agent, task.MaxAsker)
	if _, _, is := reserve(s, d); is == mustWait {
		return fmt.Sprintf("a Run of Agent %s, which needs more of limits.tokens or limits.cost than is left while other child Runs are active", agent)
	}
	return "a Run of Agent " + agent
}
