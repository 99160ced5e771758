package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// What holds of every Run, whatever its models and tools do and wherever it is
// killed.
var invariants = []struct {
	name string
	hold func(*testing.T, *chaos)
}{
	{"each call has exactly one result before the model is asked again", oneResult},
	{"steps are contiguous and results come in call order", inOrder},
	{"an intent stands before each effect and no effect is repeated", intentFirst},
	{"the calls of a cut answer are never executed", cutIsNotExecuted},
	{"a compaction parts no call from its result, keeps the first message and shrinks", compactionIsSafe},
	{"the meter never falls and its limits hold for all sessions together", meterHolds},
	{"what is told never decides what happens", eventsAreNotState},
	{"whatever a tool does is a result; only the journal ends the Run", toolsDoNotEndIt},
	{"what a person decided is acted on once", decidedOnce},
	{"what needs approval is made only as it was approved", approvedFirst},
	{"a call is judged, recorded and made in one canonical form", canonicalHolds},
	{"what is asked keeps its id, its digest and its time", askedOnce},
	{"a child Run is asked for once, heard once and charged once", raisedOnce},
	{"no secret is anywhere", noSecret},
}

func TestInvariants(t *testing.T) {
	seeds := uint64(100)
	if testing.Short() {
		seeds = 40
	}
	var played []*chaos
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			c := &chaos{luck: rand.New(rand.NewPCG(seed, 2))}
			c.play(t)
			played = append(played, c)
		})
	}
	for _, i := range invariants {
		t.Run(i.name, func(t *testing.T) {
			for seed, c := range played {
				if i.hold(t, c); t.Failed() {
					t.Fatalf("with seed %d: %s %s", seed, c.out.Reason, c.out.Message)
				}
			}
		})
	}
	variety(t, played)
}

// sessions are the recorded steps of each session, hidden ones too.
func (c *chaos) sessions() map[string][]journal.Record {
	all := map[string][]journal.Record{}
	for r := range c.log.Read() {
		all[r.Session] = append(all[r.Session], r)
	}
	return all
}

func oneResult(t *testing.T, c *chaos) {
	results := map[string]int{}
	for r := range c.log.Read() {
		if r.Kind == journal.KindResult {
			results[r.Step.CallID]++
		}
	}
	for session, records := range c.sessions() {
		for _, r := range records {
			if r.Step == nil {
				continue
			}
			for _, call := range r.Step.Calls {
				if results[call.ID] != 1 {
					t.Errorf("session %q: call %s %s has %d results", session, call.ID, call.Name, results[call.ID])
				}
			}
		}
	}
	for i, req := range c.asked {
		if due := unanswered(req.Steps); due != "" {
			t.Errorf("request %d is made while %s", i, due)
		}
	}
}

// unanswered says what is wrong with the calls and results of a request.
func unanswered(steps []step.Step) string {
	var due []step.Call
	for _, s := range steps {
		switch {
		case s.Role == step.RoleTool && (len(due) == 0 || due[0].ID != s.CallID):
			return fmt.Sprintf("a result of %s comes where %v is due", s.CallID, due)
		case s.Role == step.RoleTool:
			due = due[1:]
		case len(due) > 0:
			return fmt.Sprintf("%v wait for their results", due)
		}
		due = append(due, s.Calls...)
	}
	if len(due) > 0 {
		return fmt.Sprintf("%v wait for their results", due)
	}
	return ""
}

func inOrder(t *testing.T, c *chaos) {
	var b state.Run
	for r := range c.log.Read() {
		if err := b.Apply(r); err != nil {
			t.Fatal(err)
		}
		if !rising(b.Session(r.Session).Steps) {
			t.Fatalf("session %q is out of order behind record %d", r.Session, r.Seq)
		}
	}
	for session, records := range c.sessions() {
		if gap := missing(records); gap > 0 {
			t.Errorf("session %q has no step %d, or two", session, gap)
		}
	}
}

func rising(steps []step.Step) bool {
	return slices.IsSortedFunc(steps, func(a, b step.Step) int {
		if a.Seq < b.Seq {
			return -1
		}
		return 1
	})
}

// missing is the first step that was not recorded exactly once; 0: none.
func missing(records []journal.Record) int64 {
	var seqs []int64
	for _, r := range records {
		if r.Step != nil {
			seqs = append(seqs, r.Step.Seq)
		}
	}
	slices.Sort(seqs)
	for i, seq := range seqs {
		if seq != int64(i+1) {
			return int64(i + 1)
		}
	}
	return 0
}

func intentFirst(t *testing.T, c *chaos) {
	begun := map[string]bool{}
	for r := range c.log.Read() {
		if r.Intent != nil {
			begun[r.Intent.CallID] = true
		}
	}
	for call, n := range c.did {
		if n > 1 || !begun[call] {
			t.Errorf("%s happened %d times; its intent is recorded: %t", call, n, begun[call])
		}
	}
}

func cutIsNotExecuted(t *testing.T, c *chaos) {
	cut := map[string]bool{}
	for r := range c.log.Read() {
		if r.Step != nil && r.Step.Finish == step.FinishLength {
			for _, call := range r.Step.Calls {
				cut[call.ID] = true
			}
		}
		if r.Intent != nil && cut[r.Intent.CallID] {
			t.Errorf("%s was begun", r.Intent.CallID)
		}
	}
}

func compactionIsSafe(t *testing.T, c *chaos) {
	var b state.Run
	for r := range c.log.Read() {
		before := b.Session(r.Session).Steps
		if err := b.Apply(r); err != nil {
			t.Fatal(err)
		}
		if r.Kind != journal.KindHide {
			continue
		}
		after := b.Session(r.Session).Steps
		if wrong := unanswered(after); wrong != "" {
			t.Errorf("after record %d %s", r.Seq, wrong)
		}
		if after[0].Seq != 1 || after[0].Text() != before[0].Text() {
			t.Errorf("after record %d the session begins with %q", r.Seq, after[0].Text())
		}
	}
	for i, req := range c.asked {
		if req.Steps[0].Role != step.RoleUser || req.Steps[0].Note != "" {
			t.Errorf("request %d begins with %+v", i, req.Steps[0])
		}
	}
}

func meterHolds(t *testing.T, c *chaos) {
	var before step.Meter
	granted := int64(0)
	for r := range c.log.Read() {
		if r.Decision != nil && r.Decision.Refused == "" {
			granted += r.Decision.Steps
		}
		if r.Meter == nil {
			continue
		}
		if before.Max(*r.Meter) != *r.Meter {
			t.Fatalf("record %d: the meter falls from %+v to %+v", r.Seq, before, *r.Meter)
		}
		before = *r.Meter
	}
	// Two branches below each other's may pass a limit with what they have begun.
	if most := 25 + granted + 4; before.Steps > most || before.ToolCalls > 60+8 {
		t.Errorf("used %d of %d steps and %d calls", before.Steps, most, before.ToolCalls)
	}
	if c.out.Progress.Counts.Steps < before.Steps {
		t.Errorf("%d steps are told of %d", c.out.Progress.Counts.Steps, before.Steps)
	}
}

func eventsAreNotState(t *testing.T, c *chaos) {
	// What is known of the Run follows from its journal alone.
	b, err := state.Replay(c.log.Read())
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Session("").Ended; got != "" && got != string(c.out.Reason) {
		t.Errorf("the journal says that it ended %q, the outcome %s", got, c.out.Reason)
	}
	told := map[string]bool{}
	for _, tp := range c.tapes {
		for i, scope := range tp.scopes {
			told[scope.Parent+" "+string(tp.types[i])] = true
		}
	}
	for session := range c.sessions() {
		if !told[session+" "+string(step.EventStepFinished)] && len(b.Session(session).Steps) > 0 {
			t.Errorf("nobody was told of session %q", session)
		}
	}
}

func toolsDoNotEndIt(t *testing.T, c *chaos) {
	switch c.out.Reason {
	case task.ReasonRunnerFailed, task.ReasonInterrupted, task.ReasonDenied, task.ReasonFenced:
		t.Errorf("ended %s: %s", c.out.Reason, c.out.Message)
	default:
	}
}

func decidedOnce(t *testing.T, c *chaos) {
	names := map[string]int{}
	for r := range c.log.Read() {
		if r.Decision != nil {
			names[r.Decision.Name]++
		}
	}
	for name, n := range names {
		if n > 1 {
			t.Errorf("%s was acted on %d times", name, n)
		}
	}
}

// approvedFirst goes by the journal alone: behind each intent of a call that needs
// approval stands a person, who was shown what is made.
func approvedFirst(t *testing.T, c *chaos) {
	approved, released := map[string]bool{}, false // some rule about Guard, for the Run
	for r := range c.log.Read() {
		switch {
		case r.Decision != nil && r.Decision.Refused == "" && r.Decision.Type == task.DecisionApprove:
			approved[approval.CallOf(r.Decision.Request)+" "+r.Decision.Digest] = true
			released = released || r.Decision.Scope == task.ScopeRun && r.Decision.Tool == "Guard"
		case r.Intent == nil || r.Intent.Name != "Guard" && r.Intent.Name != "Banned":
		case r.Intent.Name == "Banned":
			t.Errorf("record %d begins what is denied", r.Seq)
		case !released && !approved[r.Intent.CallID+" "+digest.Call("Guard", r.Intent.Args)]:
			t.Errorf("record %d begins %s, which nobody approved", r.Seq, r.Intent.CallID)
		}
	}
}

// canonicalHolds goes by the journal: once a form of a call is recorded, the call
// keeps it, over kills and resumes. Each call is made in the form that was judged
// last and that its intent has.
func canonicalHolds(t *testing.T, c *chaos) {
	recorded, begun := map[string]string{}, map[string]bool{}
	keep := func(call string, args []byte) {
		if was, known := recorded[call]; known && was != string(args) {
			t.Errorf("%s is recorded with %s, then with %s", call, was, args)
		}
		recorded[call] = string(args)
	}
	for r := range c.log.Read() {
		if r.Request != nil && r.Request.Tool == "Path" {
			keep(r.Request.CallID, r.Request.Args)
		}
		if r.Intent != nil && r.Intent.Name == "Path" {
			keep(r.Intent.CallID, r.Intent.Args)
			begun[r.Intent.CallID] = true
		}
	}
	for _, m := range c.made {
		if !begun[m.id] || m.args != m.judged || m.args != recorded[m.id] || !strings.HasPrefix(m.args, `{"p":"/`) {
			t.Errorf("%s is made with %s, judged with %s and recorded with %s; its intent is recorded: %t", m.id, m.args, m.judged, recorded[m.id], begun[m.id])
		}
	}
}

func askedOnce(t *testing.T, c *chaos) {
	asked := map[string]task.Pending{}
	for _, d := range c.desks {
		for _, told := range [][]task.Progress{d.committed, d.reported} {
			for _, p := range told {
				for _, q := range p.Pending {
					if was, known := asked[q.ID]; known && q.Kind == task.PendingApproval && mustJSON(t, was) != mustJSON(t, q) {
						t.Fatalf("asked %+v, then %+v", was, q)
					}
					asked[q.ID] = q
				}
			}
		}
	}
}

// raisedOnce goes by the journal, and by what the operator saw.
func raisedOnce(t *testing.T, c *chaos) {
	asked, heard, charged, last, part := map[string]int{}, map[string]int{}, int64(0), int64(0), int64(0)
	for r := range c.log.Read() {
		if r.Request != nil && r.Request.Delegation != nil {
			asked[r.Request.ID]++
		}
		if r.Child != nil {
			heard[r.Child.Request]++
			charged += r.Child.Usage.CacheWriteTokens
		}
		if r.Meter != nil {
			last, part = r.Meter.Usage.CacheWriteTokens, r.Meter.ChildTokens
		}
	}
	for request := range heard {
		if heard[request] != 1 || asked[request] != 1 {
			t.Errorf("%s is asked %d times and heard %d times", request, asked[request], heard[request])
		}
	}
	if last != charged || part != charged || c.out.Progress.Usage.CacheWriteTokens != charged {
		t.Errorf("charged %d, of which %d apart, told %d, of %d", last, part, c.out.Progress.Usage.CacheWriteTokens, charged)
	}
	for request := range c.children.made {
		if asked[request] != 1 || slices.Contains(c.children.twice, request) {
			t.Errorf("%s is shown, and recorded %d times, or with something else", request, asked[request])
		}
	}
}

func noSecret(t *testing.T, c *chaos) {
	text := c.shown(t)
	// What a call shows while it runs is redacted where it is written: it may come
	// in pieces.
	text = strings.ReplaceAll(text, "panic: boom "+canary, "")
	if at := strings.Index(text, canary); at >= 0 {
		t.Errorf("…%s…", text[max(at-200, 0):at+20])
	}
}
