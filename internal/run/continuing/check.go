package continuing

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A Problem is why a Run cannot continue its source now. Its reason is
//
//   - Pending: the source does not exist yet;
//   - Queued: the source has not ended;
//   - Misconfigured, NothingToContinue: it never can.
type Problem struct{ Reason, Message string }

// IsFinal reports whether the Run ends because of the problem.
func (p Problem) IsFinal() bool {
	return p.Reason == v1alpha1.ReasonMisconfigured || p.Reason == v1alpha1.ReasonNothingToContinue
}

// Check returns why a Run cannot continue its source; nil: it can.
func Check(run *v1alpha1.Run, s Source) *Problem {
	for _, check := range []func(*v1alpha1.Run, Source) *Problem{exists, isNamed, fits, hasEnded, isKept, isFree, hasPrompt} {
		if p := check(run, s); p != nil {
			return p
		}
	}
	return nil
}

func misconfigured(format string, args ...any) *Problem {
	return &Problem{v1alpha1.ReasonMisconfigured, fmt.Sprintf(format, args...)}
}

func nothing(format string, args ...any) *Problem {
	return &Problem{v1alpha1.ReasonNothingToContinue, fmt.Sprintf(format, args...)}
}

func exists(run *v1alpha1.Run, s Source) *Problem {
	if s.Run != nil {
		return nil
	}
	if uid := run.Spec.ContinueFrom.UID; uid != "" {
		return nothing("Run %s (spec.continueFrom.run) was deleted, and no other Run will have the uid %s. Create a Run without continueFrom", run.Spec.ContinueFrom.Run, uid)
	}
	return &Problem{v1alpha1.ReasonPending, fmt.Sprintf("Run %s (spec.continueFrom.run) does not exist in namespace %s", run.Spec.ContinueFrom.Run, run.Namespace)}
}

func isNamed(run *v1alpha1.Run, s Source) *Problem {
	if IsNamed(run, s.Run) {
		return nil
	}
	return nothing("Run %s (spec.continueFrom.run) was deleted, and another Run has its name now: its UID is %s, and spec.continueFrom.uid is %s. Create a Run without continueFrom, or with the uid of the Run to continue", s.Run.Name, s.Run.UID, run.Spec.ContinueFrom.UID)
}

// Replaced returns the message that another Run has the name of the source of a Run; empty: it is the source.
func Replaced(run, source *v1alpha1.Run) string {
	if p := isNamed(run, Source{Run: source}); p != nil {
		return p.Message
	}
	return ""
}

// IsNamed reports whether a Run is the source that another one names, also by its UID if that has one.
func IsNamed(run, source *v1alpha1.Run) bool {
	uid := run.Spec.ContinueFrom.UID
	return uid == "" || uid == string(source.UID)
}

// fits checks what does not change when the source ends.
func fits(run *v1alpha1.Run, s Source) *Problem {
	name := s.Run.Name
	switch {
	case s.Run.Spec.Workflow != "":
		return misconfigured("Run %s is a Run of Workflow %s. An Agent can continue the Run of an Agent only: name one of its child Runs (kubectl get runs -l %s=%[1]s -n %[4]s)", name, s.Run.Spec.Workflow, v1alpha1.LabelWorkflowRun, run.Namespace)
	case s.Run.Spec.User != run.Spec.User:
		return misconfigured("spec.user is %q, and that of Run %s is %q. A Run can be continued for the same user only: create a Run with that spec.user", run.Spec.User, name, s.Run.Spec.User)
	case len(s.Circle) > 0:
		return misconfigured("Runs %s wait for each other, because each continues the next (spec.continueFrom). Delete them, and continue a Run that has ended", strings.Join(s.Circle, ", "))
	case len(Chain(s.Run)) > v1alpha1.MaxContinued:
		return misconfigured("A Run can continue at most %d Runs, one after the other, and Run %s has continued as many. Create a Run without continueFrom, with what matters of them in its prompt", v1alpha1.MaxContinued, name)
	}
	return nil
}

func hasEnded(_ *v1alpha1.Run, s Source) *Problem {
	switch {
	case !runstatus.IsFinished(s.Run):
		return &Problem{v1alpha1.ReasonQueued, fmt.Sprintf("Waiting for the end of Run %s, which this Run continues", s.Run.Name)}
	case s.Workflow != nil:
		return &Problem{v1alpha1.ReasonQueued, fmt.Sprintf("Waiting for the end of Run %s, whose other Runs may still change the files of Run %s, which this Run continues", s.Workflow.Name, s.Run.Name)}
	case s.Pod != nil:
		return &Problem{v1alpha1.ReasonQueued, fmt.Sprintf("Waiting for the end of pod %s, which may still change the files of Run %s, which this Run continues", s.Pod.Name, s.Run.Name)}
	}
	return nil
}

func isKept(_ *v1alpha1.Run, s Source) *Problem {
	name, agent, a := s.Run.Name, s.Run.Spec.Agent, s.Run.Status.Attempt
	switch reason := runstatus.OutcomeOf(s.Run.Status).Reason; {
	case reason == v1alpha1.ReasonRestored:
		return nothing("Run %s was restored from a backup, without its conversation and its files. Create a Run without continueFrom", name)
	case a == nil:
		return nothing("Run %s ended before it started (%s), and has nothing to continue. Create a Run without continueFrom", name, reason)
	case a.VolumeClaim == "":
		return nothing("Run %s kept no conversation and no files, because workspace.durability of Agent %s was Pod. Set it to Volume, so that later Runs can be continued, and create a Run without continueFrom", name, agent)
	case s.VolumeClaim == nil || s.VolumeClaim.DeletionTimestamp != nil:
		return Deleted(name, a.VolumeClaim)
	}
	return nil
}

// isFree waits for other Runs that use the files.
func isFree(run *v1alpha1.Run, s Source) *Problem {
	if p := InUse(s); p != nil {
		return p
	}
	owners := runnerpod.Owners(s.VolumeClaim)
	isOwner := slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == run.UID })
	if run.Spec.ContinueFrom.Workspace == v1alpha1.ContinueShare && len(owners) >= runnerpod.MaxOwners && !isOwner {
		return misconfigured("%d Runs have PersistentVolumeClaim %s, and as many can share one. Delete Runs of them, or set spec.continueFrom.workspace to Copy in a new Run", len(owners), s.VolumeClaim.Name)
	}
	return nil
}

// InUse returns what a Run waits for because it uses the files of its source; nil: no other Run does.
func InUse(s Source) *Problem {
	switch {
	case s.User != nil:
		return &Problem{v1alpha1.ReasonQueued, fmt.Sprintf("Waiting for the end of Run %s, which works on the files of the Run that this Run continues (its spec.continueFrom.workspace is Share)", s.User.Name)}
	case s.Pod != nil:
		return &Problem{v1alpha1.ReasonQueued, fmt.Sprintf("Waiting for the end of pod %s, which may still change the files of the Run that this Run continues", s.Pod.Name)}
	case s.Copier != nil:
		return &Problem{v1alpha1.ReasonQueued, fmt.Sprintf("Waiting for pod %s, which copies the files of the Run that this Run continues", s.Copier.Name)}
	}
	return nil
}

// Deleted returns the problem that the files of the source of a Run no longer exist.
func Deleted(source, claim string) *Problem {
	return nothing("The conversation and the files of Run %s were deleted with PersistentVolumeClaim %s. Create a Run without continueFrom. To keep those of later Runs for longer, set retention.volume of their Agents", source, claim)
}

func hasPrompt(run *v1alpha1.Run, s Source) *Problem {
	reason := runstatus.OutcomeOf(s.Run.Status).Reason
	says := run.Spec.Prompt != "" || run.Spec.ContinueFrom.Step != nil // input is for the instructions of the Agent
	if says || reason != v1alpha1.ReasonFinished && reason != v1alpha1.ReasonRejected {
		return nil
	}
	return misconfigured("Run %s ended with reason %s, so there is nothing left to do. Create a Run with spec.prompt, which says what to do next, or with spec.continueFrom.step", s.Run.Name, reason)
}

// Chain returns the names of a Run and of the Runs that it continued.
func Chain(run *v1alpha1.Run) []string {
	names := []string{run.Name}
	if before := run.Status.ContinuedFrom; before != nil {
		names = append(names, before.Runs...)
	}
	return names
}

// StatusOf returns what the status of a Run says of its source, which is ready.
func StatusOf(source *v1alpha1.Run) *v1alpha1.ContinuedFrom {
	out := &v1alpha1.ContinuedFrom{Runs: Chain(source), UID: string(source.UID)}
	if a := source.Status.Attempt; a != nil {
		out.VolumeClaim = a.VolumeClaim
	}
	cost, isPriced := int64(0), true
	add := func(tokens int64, microUSD *int64) {
		out.TotalTokens = min(out.TotalTokens+tokens, v1alpha1.MaxUsage)
		switch {
		case microUSD != nil:
			cost = min(cost+*microUSD, v1alpha1.MaxUsage)
		case tokens > 0: // a Run that used nothing cost nothing
			isPriced = false
		}
	}
	if before := source.Status.ContinuedFrom; before != nil {
		add(before.TotalTokens, before.CostMicroUSD)
	}
	if p := source.Status.Progress; p != nil {
		add(p.Usage.TotalTokens, p.Usage.CostMicroUSD)
	}
	if isPriced {
		out.CostMicroUSD, out.Cost = &cost, task.Money(cost)
	}
	return out
}
