package untrusted

import (
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// digestPattern is what a digest, which people copy, may consist of.
var digestPattern = regexp.MustCompile(`^[0-9A-Za-z._:+/=-]{0,64}$`)

// kinds are those of requests; one without a kind is a question.
var kinds = []string{"", task.PendingApproval, task.PendingQuestion, task.PendingLimit, task.PendingDelegation}

// Progress returns what a runner reported with each count within its bounds, with
// names and messages on one visible line, and without requests of unknown kinds and
// requests and Decisions whose ids could not be those of Kubernetes objects. The original is not changed.
func Progress(p *v1alpha1.RunProgress) *v1alpha1.RunProgress {
	if p == nil {
		return nil
	}
	p = p.DeepCopy()
	clampCounts(&p.Counts)
	clampUsage(&p.Usage)
	lines(task.MaxMessage, &p.PodUID, &p.State, &p.Model, &p.Usage.Cost, &p.Usage.Duration)
	if p.ModelWait != nil {
		lines(task.MaxHost, &p.ModelWait.Model)
		lines(task.MaxWarning, &p.ModelWait.Message)
	}
	if p.Step != nil {
		cleanID(&p.Step.ID)
		lines(task.MaxMessage, &p.Step.Kind, &p.Step.Name)
	}
	for i := range p.Recent {
		r := &p.Recent[i]
		clamp(&r.DurationMs)
		cleanID(&r.ID)
		lines(task.MaxSummary, &r.Kind, &r.Name, &r.Summary)
	}
	p.Pending = slices.DeleteFunc(p.Pending, func(r v1alpha1.PendingRequest) bool {
		return !IsID(r.ID) || !slices.Contains(kinds, r.Kind) || !digestPattern.MatchString(r.Digest) || !digestPattern.MatchString(r.DisplayDigest)
	})
	for i := range p.Pending {
		lines(task.MaxAsker, &p.Pending[i].Agent, &p.Pending[i].Tool, &p.Pending[i].Rule)
	}
	p.Decided = slices.DeleteFunc(p.Decided, func(d v1alpha1.DecidedRequest) bool {
		return !IsID(d.Name) || d.Request != "" && !IsID(d.Request) || !digestPattern.MatchString(d.Digest)
	})
	for i := range p.Decided {
		lines(task.MaxRefused, &p.Decided[i].Refused)
	}
	if p.Refused != nil {
		cleanRefused(p.Refused)
	}
	if p.Result != nil {
		cleanResult(p.Result)
	}
	return p
}

// maxAhead is how far the clock of a runner may be ahead.
const maxAhead = time.Minute

// IsTime reports whether something can have happened to a Run, which was created before now, at a
// time that its runner reported. The operator ignores reports of other times, which only a
// compromised runner writes, or one whose clock is wrong. A creation counts in whole seconds.
func IsTime(at, created, now time.Time) bool {
	return !at.Before(created) && !at.After(now.Add(maxAhead))
}

// IsID reports whether an id may be a part of the name of a Kubernetes object. The operator ignores a
// request with another one, which only a compromised runner writes.
func IsID(id string) bool { return len(validation.IsDNS1123Subdomain(id)) == 0 }

// cleanID empties what cannot be the id of a step.
func cleanID(id *v1alpha1.StepID) {
	if len(*id) > task.MaxStepID || *id != "" && !IsID(string(*id)) {
		*id = ""
	}
}

func cleanRefused(r *v1alpha1.Refused) {
	clamp(&r.Connections, &r.ToolCalls)
	for i := range r.Hosts {
		h := &r.Hosts[i]
		clamp(&h.Count)
		cleanID(&h.FirstID)
		lines(task.MaxHost, &h.Host)
	}
	for i := range r.Tools {
		t := &r.Tools[i]
		clamp(&t.Count)
		cleanID(&t.FirstID)
		lines(task.MaxTool, &t.Name)
	}
}

func cleanResult(r *v1alpha1.Result) {
	lines(task.MaxMessage, &r.Reason, &r.Message)
	lines(task.MaxWarning, &r.Warning)
	for i := range r.Files {
		clamp(&r.Files[i].Size)
		lines(task.MaxPath, &r.Files[i].Path)
	}
	if r.Published != nil {
		lines(task.MaxMessage, &r.Published.Branch, &r.Published.Commit)
	}
}

// Termination does for a termination message what Progress does for a report.
func Termination(t task.Termination) task.Termination {
	counts, usage := v1alpha1.Counts(t.Counts), v1alpha1.Usage(t.Usage)
	clampCounts(&counts)
	clampUsage(&usage)
	lines(task.MaxMessage, &usage.Cost, &usage.Duration, &t.Result.Message)
	lines(task.MaxWarning, &t.Result.Warning)
	t.Counts, t.Usage = task.Counts(counts), task.Usage(usage)
	t.Result.Reason = task.Reason(Line(string(t.Result.Reason), task.MaxReason))
	t.Result.Files = slices.Clone(t.Result.Files)
	for i := range t.Result.Files {
		clamp(&t.Result.Files[i].Size)
		lines(task.MaxPath, &t.Result.Files[i].Path)
	}
	return t
}

func clampCounts(c *v1alpha1.Counts) {
	clampTo(v1alpha1.MaxCount, &c.Steps, &c.ModelCalls, &c.ToolCalls, &c.ToolErrors, &c.Errors, &c.Repairs, &c.OutageCalls)
}

func clampUsage(u *v1alpha1.Usage) {
	clamp(&u.InputTokens, &u.CacheReadTokens, &u.CacheWriteTokens, &u.OutputTokens, &u.ReasoningTokens, &u.TotalTokens)
	clampTo(v1alpha1.MaxCount, &u.DurationSeconds)
	for _, optional := range []**int64{&u.CostMicroUSD, &u.ChildTokens, &u.ChildCostMicroUSD} {
		if *optional != nil {
			n := **optional
			clamp(&n)
			*optional = &n
		}
	}
}

func clamp(counts ...*int64) { clampTo(v1alpha1.MaxUsage, counts...) }

func clampTo(most int64, counts ...*int64) {
	for _, n := range counts {
		*n = min(max(*n, 0), most)
	}
}

// lines makes a line of at most limit bytes of each text.
func lines(limit int, texts ...*string) {
	for _, text := range texts {
		*text = Line(*text, limit)
	}
}
