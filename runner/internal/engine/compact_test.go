package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/compaction"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A reader is a model that reads so many pages, one a turn, and sums up what it
// read when it is asked to. It goes by what it sees of the session, and keeps
// what it was asked.
type reader struct {
	pages int
	log   *journal.Memory
	asked []*model.Request
	at    []int // how many records there were, each time
	// fails is what it says instead of an answer; nil: nothing.
	fails func(*model.Request) error
}

// asksForSummary says whether a request is one for a summary.
func asksForSummary(req *model.Request) bool {
	return req.Steps[len(req.Steps)-1].Text() == compaction.SummaryPrompt
}

func (r *reader) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	kept := *req
	kept.Steps = slices.Clone(req.Steps)
	r.asked = append(r.asked, &kept)
	r.at = append(r.at, countRecords(r.log))
	if r.fails != nil {
		if err := r.fails(req); err != nil {
			return (&fakeModel{turns: []turn{fails(err)}}).Stream(ctx, req)
		}
	}
	t := r.answer(req)
	t.usage = step.Usage{InputTokens: model.EstimateInput(req), OutputTokens: 20}
	return (&fakeModel{turns: []turn{t}}).Stream(ctx, req)
}

func (r *reader) answer(req *model.Request) turn {
	page := pageAfter(req)
	switch {
	case asksForSummary(req):
		return says(fmt.Sprintf("I have read page %d", page-1))
	case page > r.pages:
		return says("all read")
	case page%9 == 0 && req.Steps[len(req.Steps)-1].Note == "":
		return says("") // somebody has to tell it to go on
	}
	return calls(fmt.Sprintf(`Page {"n":%d}`, page))
}

// pageAfter is the next page to read, by what is left in sight.
func pageAfter(req *model.Request) int {
	read := 0
	for _, s := range req.Steps {
		if _, after, ok := strings.Cut(s.Text(), "I have read page "); ok {
			fmt.Sscanf(after, "%d", &read)
		}
		for _, c := range s.Calls {
			fmt.Sscanf(string(c.Args), `{"n":%d}`, &read)
		}
	}
	return read + 1
}

func countRecords(log *journal.Memory) int {
	n := 0
	for range log.Read() {
		n++
	}
	return n
}

// library is a testRun whose agent reads so many pages of so many bytes.
func library(pages, size int) (*testRun, *reader) {
	s := newTestRun(enginetest.Toolbox{newTool("Page", tool.ReadOnly, func(_ context.Context, c tool.Call) (tool.Result, error) {
		return tool.Result{Text: string(c.Args) + strings.Repeat(" word", size/5)}, nil
	})})
	r := &reader{pages: pages, log: s.journal}
	s.Actor.Model = Model{Model: r, Name: "m", Window: 20_000, MaxOutput: 1000}
	s.Task.Limits.Steps = 1000
	return s, r
}

// sent is what a model is told, without what is no part of a request on a wire.
func sent(req *model.Request) []string {
	var all []string
	for _, s := range req.Steps {
		s.Usage, s.At, s.Duration = step.Usage{}, step.Step{}.At, 0
		line, _ := json.Marshal(s)
		all = append(all, string(line))
	}
	return all
}

// Two hundred turns, with notes, nudges and people in between: a request is the
// one before it and more, unless a compaction stands between.
func TestARequestIsAPrefixOfTheNextUnlessACompactionStandsBetween(t *testing.T) {
	s, r := library(200, 1000)
	people := newSignals()
	s.withApprovers(people)
	page := s.Actor.Tools.(enginetest.Toolbox)[0]
	read := page.Call
	page.Call = func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if strings.Contains(string(c.Args), "7") {
			people.say(task.Decision{Name: "say-" + c.ID, Type: task.DecisionMessage, Value: "faster, after " + c.ID})
		}
		return read(ctx, c)
	}
	s.Actor.Tools = enginetest.Toolbox{page}
	low := false
	s.LowSpace = func() bool { low = !low; return low }
	if out := s.run(t); out.Reason != task.ReasonFinished || out.Text != "all read" {
		t.Fatalf("ended %s: %s %s", out.Reason, out.Message, out.Text)
	}
	compactions := len(s.sink.of(step.EventCompacted))
	if len(r.asked) < 200 || compactions < 3 {
		t.Fatalf("%d questions and %d compactions", len(r.asked), compactions)
	}
	breaks := 0
	for i := 1; i < len(r.asked); i++ {
		before, now := sent(r.asked[i-1]), sent(r.asked[i])
		if asksForSummary(r.asked[i-1]) {
			before = before[:len(before)-1]
		}
		if len(now) >= len(before) && slices.Equal(now[:len(before)], before) {
			continue
		}
		if breaks++; !hidBetween(s, r.at[i-1], r.at[i]) {
			t.Fatalf("request %d is not the one before it and more:\n%s", i, cmp.Diff(before, now))
		}
	}
	if breaks != compactions {
		t.Errorf("%d requests begin anew after %d compactions", breaks, compactions)
	}
	for i, req := range r.asked {
		if used := compaction.Used(req); used > compaction.Trigger(20_000, 1000)+500 {
			t.Errorf("request %d has %d tokens", i, used)
		}
	}
}

// hidBetween says whether a compaction was recorded between two moments.
func hidBetween(s *testRun, from, to int) bool {
	n := 0
	for rec := range s.journal.Read() {
		if n++; n > from && n <= to && rec.Kind == journal.KindHide {
			return true
		}
	}
	return false
}

// Wherever a session is cut, the one that takes it up asks what this one would
// have asked.
func TestASessionTakenUpAnywhereAsksTheSame(t *testing.T) {
	s, r := library(90, 2000)
	if out := s.run(t); out.Reason != task.ReasonFinished {
		t.Fatalf("ended %s: %s", out.Reason, out.Message)
	}
	if n := len(s.sink.of(step.EventCompacted)); n < 3 {
		t.Fatalf("only %d compactions", n)
	}
	var all []journal.Record
	for rec := range s.journal.Read() {
		all = append(all, rec)
	}
	for cut := 1; cut < len(all); cut++ {
		next := slices.IndexFunc(r.at, func(at int) bool { return at >= cut })
		if next < 0 {
			break // all was asked
		}
		again, other := library(90, 2000)
		for _, rec := range all[:cut] {
			_ = again.journal.Append(rec)
		}
		other.fails = func(*model.Request) error { return errKilled }
		again.run(t)
		if diff := cmp.Diff(sent(r.asked[next]), sent(other.asked[0])); diff != "" {
			t.Fatalf("behind record %d of %d it asks -before +now:\n%s", cut, len(all), diff)
		}
	}
}

func TestOldResultsAreClearedWhereThatIsEnough(t *testing.T) {
	s, r := library(12, 20_000)
	s.Actor.Model.Window = 60_000
	if out := s.run(t); out.Reason != task.ReasonFinished {
		t.Fatalf("ended %s: %s", out.Reason, out.Message)
	}
	if len(s.sink.of(step.EventCompacted)) == 0 {
		t.Fatal("nothing was hidden")
	}
	for _, req := range r.asked {
		if asksForSummary(req) {
			t.Error("a summary was asked for")
		}
	}
}

// tooLong is what a provider says to more than so many tokens.
func tooLong(most int64) func(*model.Request) error {
	return func(req *model.Request) error {
		if model.EstimateInput(req) > most {
			return &model.ContextTooLongError{Message: "prompt is too long", Window: most}
		}
		return nil
	}
}

func TestAProviderThatKnowsBetterIsObeyed(t *testing.T) {
	s, r := library(60, 2000)
	s.Actor.Model.Window = 1_000_000
	r.fails = tooLong(9_000)
	if out := s.run(t); out.Reason != task.ReasonFinished {
		t.Fatalf("ended %s: %s", out.Reason, out.Message)
	}
	if len(s.sink.of(step.EventCompacted)) == 0 {
		t.Error("nothing was hidden")
	}
}

// The summary of a session that is too long even for its own summary is asked
// for without results.
func TestASummaryIsMadeToFit(t *testing.T) {
	s, r := library(60, 2000)
	s.Actor.Model.Window = 1_000_000
	small := &reader{pages: 60, log: s.journal, fails: tooLong(3_000)}
	s.Actor.Summarizer = &Model{Model: small, Name: "small"}
	r.fails = tooLong(12_000)
	out := s.run(t)
	if out.Reason != task.ReasonFinished {
		t.Fatalf("ended %s: %s", out.Reason, out.Message)
	}
	if len(small.asked) < 2 || model.EstimateInput(small.asked[1]) >= model.EstimateInput(small.asked[0]) {
		t.Errorf("the summarizer was asked %d times", len(small.asked))
	}
	for _, req := range r.asked {
		if asksForSummary(req) {
			t.Error("the model itself was asked for a summary")
		}
	}
	if want := int64(len(r.asked) + len(small.asked)); out.Progress.Counts.ModelCalls != want {
		t.Errorf("%d model calls are counted of %d", out.Progress.Counts.ModelCalls, want)
	}
}

func TestWhatCannotBeMadeToFitEnds(t *testing.T) {
	cases := map[string]struct {
		change func(*testRun, *reader)
		want   string
	}{
		"because nothing can be hidden": {
			func(_ *testRun, r *reader) { r.fails = tooLong(10) }, "nothing more can be hidden",
		},
		"because its summary does not fit": {
			func(s *testRun, r *reader) {
				s.Actor.Summarizer = &Model{Model: &reader{log: s.journal, fails: tooLong(10)}, Name: "small"}
				r.fails = tooLong(6_000)
			}, "even a summary does not fit",
		},
		"because it stays too long, however often it is summed up": {
			func(s *testRun, r *reader) {
				s.Actor.Model.Window = 2_000
				s.Actor.Agent.Instructions = strings.Repeat("be brief ", 2000)
				r.fails = refusesFrom(20)
			}, "prompt is too long; nothing more can be hidden",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, r := library(60, 2000)
			tc.change(s, r)
			out := s.run(t)
			if out.Reason != task.ReasonContextTooLong || !strings.Contains(out.Message, tc.want) {
				t.Errorf("ended %s: %s", out.Reason, out.Message)
			}
		})
	}
}

func TestASummaryThatFailsIsAnErrorLikeAnyOther(t *testing.T) {
	s, r := library(60, 2000)
	r.fails = func(req *model.Request) error {
		if asksForSummary(req) {
			return &model.UnavailableError{Status: 503, Message: "busy", Final: true}
		}
		return nil
	}
	if out := s.run(t); out.Reason != task.ReasonModelUnavailable {
		t.Errorf("ended %s: %s", out.Reason, out.Message)
	}
}

func TestASummaryIsWithoutSecretsAndNeverEmpty(t *testing.T) {
	const canary = "sk-canary-0123456789"
	cases := map[string]struct {
		says turn
		want string
	}{
		"without secrets": {says("the key is " + canary), "the key is ‹secret:s/k›"},
		"never empty":     {calls("Page {}"), noSummary},
		"never a refusal": {turn{text: "I cannot help with that.", finish: step.FinishRefusal}, noSummary},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, _ := library(60, 2000)
			s.Redact = redact.New(redact.Secret{Name: "s", Key: "k", Value: []byte(canary)})
			s.Actor.Summarizer = &Model{Model: &fakeModel{turns: []turn{tc.says}}, Name: "other"}
			s.run(t)
			for rec := range s.journal.Read() {
				if rec.Hide == nil {
					continue
				}
				if rec.Hide.Summary != tc.want {
					t.Errorf("the summary is %q, want %q", rec.Hide.Summary, tc.want)
				}
				return
			}
			t.Error("nothing was hidden")
		})
	}
}
