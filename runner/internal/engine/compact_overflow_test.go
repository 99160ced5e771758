package engine

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/meter"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// refusesFrom is a provider that refuses everything but summaries once a page was read,
// however short it is.
func refusesFrom(page int) func(*model.Request) error {
	return func(req *model.Request) error {
		if pageAfter(req) < page || asksForSummary(req) {
			return nil
		}
		return &model.ContextTooLongError{Message: "prompt is too long"}
	}
}

// badAbove is a provider that refuses larger requests in words of its own.
func badAbove(most int64, status int, words string) func(*model.Request) error {
	return func(req *model.Request) error {
		if model.EstimateInput(req) > most {
			return &model.BadRequestError{Status: status, Message: words}
		}
		return nil
	}
}

// butSummaries is a provider that answers each request for a summary.
func butSummaries(fails func(*model.Request) error) func(*model.Request) error {
	return func(req *model.Request) error {
		if asksForSummary(req) {
			return nil
		}
		return fails(req)
	}
}

func TestARefusalOfALargeRequestIsTriedOnceShorter(t *testing.T) {
	for name, tc := range map[string]struct {
		pages, size int
		window      int64
		fails       func(*model.Request) error
		want        task.Reason
		compacted   bool
	}{
		"400 in words of a server, far below the window": {12, 20_000, 131_072, badAbove(12_000, 400, "requested: 9000 exceeds"), task.ReasonFinished, true},
		"422 in other words":                             {12, 20_000, 131_072, badAbove(12_000, 422, "inputs must be fewer"), task.ReasonFinished, true},
		"400 near the window, which grew slowly":         {60, 1_000, 11_000, badAbove(8_000, 400, "no"), task.ReasonFinished, true},
		"400 of a session that grew slowly":              {60, 1_000, 131_072, badAbove(8_000, 400, "no"), task.ReasonFinished, true},
		"another status":                                 {12, 20_000, 131_072, badAbove(12_000, 404, "no such model"), task.ReasonMisconfigured, false},
		"a request that grew little":                     {12, 20, 131_072, butSummaries(badAbove(200, 400, "a bad parameter")), task.ReasonMisconfigured, false},
		"the first request":                              {12, 20_000, 131_072, badAbove(0, 400, "a bad parameter"), task.ReasonMisconfigured, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := library(tc.pages, tc.size)
			s.Actor.Model.Window = tc.window
			r.fails = tc.fails
			out := s.run(t)
			if out.Reason != tc.want {
				t.Errorf("ended %s, want %s: %s", out.Reason, tc.want, out.Message)
			}
			if got := len(s.sink.of(step.EventCompacted)) > 0; got != tc.compacted {
				t.Errorf("compacted: %t, want %t", got, tc.compacted)
			}
		})
	}
}

// A request is refused for another cause than its length: the end says which.
func TestARefusalThatACompactionDoesNotHelpKeepsItsWords(t *testing.T) {
	for name, fails := range map[string]func(*model.Request) error{
		"every request from then on": func(req *model.Request) error {
			if pageAfter(req) > 4 && !asksForSummary(req) {
				return &model.BadRequestError{Status: 400, Message: "the image is broken"}
			}
			return nil
		},
		"also that for a summary": func(req *model.Request) error {
			if pageAfter(req) > 4 {
				return &model.BadRequestError{Status: 400, Message: "the image is broken"}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := library(12, 20_000)
			s.Actor.Model.Window = 131_072
			r.fails = fails
			out := s.run(t)
			if out.Reason != task.ReasonMisconfigured || !strings.Contains(out.Message, "the image is broken") || strings.Contains(out.Message, "window") {
				t.Errorf("ended %s: %s", out.Reason, out.Message)
			}
			if len(r.asked) > 12 {
				t.Errorf("the model was asked %d times", len(r.asked))
			}
		})
	}
}

// What was refused is learned: each next compaction comes before a refusal.
func TestTheSizeThatWasRefusedIsNotSentAgain(t *testing.T) {
	s, r := library(60, 12_000)
	s.Actor.Model.Window = 1_000_000
	refused := 0
	limit := badAbove(20_000, 400, "too many somethings")
	r.fails = func(req *model.Request) error {
		err := limit(req)
		if err != nil {
			refused++
		}
		return err
	}
	if out := s.run(t); out.Reason != task.ReasonFinished {
		t.Fatalf("ended %s: %s", out.Reason, out.Message)
	}
	if n := len(s.sink.of(step.EventCompacted)); n < 4 || refused > 2 {
		t.Errorf("refused %d times, compacted %d times", refused, n)
	}
}

// A server reports less than a request takes. No request is larger than the window by our
// own estimate.
func TestUsageThatCannotBeTrueDoesNotDelayACompaction(t *testing.T) {
	const window = 8192
	for name, report := range map[string]func(req *model.Request, size int64) int64{
		"the truth": func(_ *model.Request, size int64) int64 { return size },
		"only what is new": func(req *model.Request, _ int64) int64 {
			return model.EstimateInput(&model.Request{Steps: req.Steps[max(len(req.Steps)-2, 0):]})
		},
		"always the same":       func(*model.Request, int64) int64 { return 3000 },
		"one token":             func(*model.Request, int64) int64 { return 1 },
		"little more than half": func(_ *model.Request, size int64) int64 { return size * 55 / 100 },
		"all but the first 4 k": func(_ *model.Request, size int64) int64 { return max(size-4000, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := library(60, 2_000)
			r := &reporter{reader: reader{pages: 60, log: s.journal}, report: report}
			s.Actor.Model = Model{Model: r, Name: "m", Window: window, MaxOutput: 1024}
			s.Actor.Agent.Instructions = strings.Repeat("be brief ", 800)
			if out := s.run(t); out.Reason != task.ReasonFinished {
				t.Fatalf("ended %s: %s", out.Reason, out.Message)
			}
			for i, req := range r.asked {
				if size := model.EstimateInput(req); size > window {
					t.Errorf("request %d has %d tokens", i, size)
				}
			}
		})
	}
}

// A server cuts what is too long without a word, and one turn has more results than fit.
func TestATurnThatExceedsTheWindowIsNotSentWhole(t *testing.T) {
	s, _ := library(0, 4_000)
	var pages []string
	for i := range 10 {
		pages = append(pages, fmt.Sprintf(`Page {"n":%d}`, i))
	}
	m := &fakeModel{turns: []turn{calls(pages...), says("all read")}}
	s.Actor.Model = Model{Model: m, Name: "m", Window: 8192, MaxOutput: 1024}
	if out := s.run(t); out.Reason != task.ReasonFinished {
		t.Fatalf("ended %s: %s", out.Reason, out.Message)
	}
	if size := model.EstimateInput(m.asked[1]); size > 8192 {
		t.Errorf("the request has %d tokens", size)
	}
}

// A reporter is a reader that reports a usage of its own.
type reporter struct {
	reader
	report func(req *model.Request, size int64) int64
}

func (r *reporter) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	kept := *req
	r.asked = append(r.asked, &kept)
	t := r.answer(req)
	t.usage = step.Usage{InputTokens: r.report(req, model.EstimateInput(req)), OutputTokens: 20}
	return (&fakeModel{turns: []turn{t}}).Stream(ctx, req)
}

// The window was full in the midst of an answer. What it cost counts, what users saw of it is
// void, and the session is compacted.
func TestAnAnswerThatFilledTheWindowIsAskedForAgain(t *testing.T) {
	s, r := library(12, 20_000)
	s.Actor.Model.Window = 131_072
	full := 0
	s.Actor.Model.Model = &filling{reader: r, most: 20_000, full: &full}
	out := s.run(t)
	if out.Reason != task.ReasonFinished || out.Text != "all read" {
		t.Fatalf("ended %s: %s %s", out.Reason, out.Message, out.Text)
	}
	resets := len(s.sink.of(step.EventReset))
	if full == 0 || resets < full || len(s.sink.of(step.EventCompacted)) == 0 {
		t.Errorf("the window was full %d times, %d answers were void, compacted %d times", full, resets, len(s.sink.of(step.EventCompacted)))
	}
	if got := out.Progress.Usage.TotalTokens; got < int64(full)*20_000 {
		t.Errorf("%d tokens are counted", got)
	}
	if strings.Contains(s.transcript(t), "half an ans") {
		t.Error("an answer that was cut is in the session")
	}
}

// A filling model breaks off in requests that are too large for an answer.
type filling struct {
	*reader
	most int64
	full *int
}

func (f *filling) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	size := model.EstimateInput(req)
	if size <= f.most || asksForSummary(req) {
		return f.reader.Stream(ctx, req)
	}
	*f.full++
	return func(yield func(model.Delta, error) bool) {
		usage := step.Usage{InputTokens: size, OutputTokens: 9}
		_ = yield(model.Delta{Text: "half an ans"}, nil) && yield(model.Delta{Usage: &usage}, nil) &&
			yield(model.Delta{}, &model.ContextTooLongError{Message: "the window was full"})
	}
}

func TestContextFull(t *testing.T) {
	long := []step.Step{user("go")}
	for i := range 8 {
		long = append(long, assistant("I read", step.Call{ID: fmt.Sprint(i), Name: "Page", Args: fmt.Append(nil, i)}), step.Step{Role: step.RoleTool, CallID: fmt.Sprint(i), Parts: []step.Part{{Kind: step.PartText, Text: strings.Repeat(fmt.Sprintf("word%d ", i), 500)}}})
	}
	for i := range long {
		long[i].Seq = int64(i) + 1
	}
	tooLong := &model.ContextTooLongError{Message: "too long"}
	refused := modelEnd(&Model{Name: "m"}, &Actor{}, &model.BadRequestError{Status: 400, Message: "no"})
	full := contextSize{used: 10_000, trigger: 5_000}
	for name, tc := range map[string]struct {
		view view
		kind actionKind
		end  string
	}{
		"what fits is sent":                                        {view: view{contextSize: contextSize{used: 1, trigger: 2}}, kind: askModel},
		"what is too large is compacted":                           {view: view{contextSize: full}, kind: compactSession},
		"what stays too large by our count is sent":                {view: view{contextSize: full, compactions: 3}, kind: askModel},
		"what was refused is compacted though that was not enough": {view: view{contextSize: full, compactions: 3, overflow: tooLong}, kind: compactSession},
		"what was refused after three compactions ends":            {view: view{contextSize: full, sinceAnswer: 3, overflow: tooLong}, kind: endSession, end: fmt.Sprintf(endContextFull, tooLong, 3)},
		"what was refused in other words ends in these":            {view: view{contextSize: full, sinceAnswer: 3, overflow: tooLong, refused: refused}, kind: endSession, end: refused.Message},
		"what was refused in other words is compacted":             {view: view{contextSize: full, overflow: tooLong, refused: refused}, kind: compactSession},
		"a limit comes first":                                      {view: view{contextSize: full, reached: meter.Reached(step.Meter{Steps: 1}, task.Limits{Steps: 1})}, kind: endSession, end: meter.Reached(step.Meter{Steps: 1}, task.Limits{Steps: 1}).End(place.Pod).Message},
	} {
		t.Run(name, func(t *testing.T) {
			tc.view.Steps = long
			act := next(tc.view)
			if act.kind != tc.kind {
				t.Fatalf("kind %d, want %d", act.kind, tc.kind)
			}
			if diff := cmp.Diff(tc.end, act.outcome.Message); diff != "" {
				t.Errorf("message -want +got:\n%s", diff)
			}
		})
	}
}

// Only the summary of the whole session is too long, in words that are not known.
func TestASummaryThatIsRefusedInOtherWordsIsMadeToFit(t *testing.T) {
	s, r := library(60, 2000)
	r.fails = func(req *model.Request) error {
		if asksForSummary(req) && model.EstimateInput(req) > 12_000 {
			return &model.BadRequestError{Status: 422, Message: "inputs must be fewer"}
		}
		return nil
	}
	if out := s.run(t); out.Reason != task.ReasonFinished {
		t.Errorf("ended %s: %s", out.Reason, out.Message)
	}
}
