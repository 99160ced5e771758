package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/redact"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// maxName is how much of a name the last steps show. A model may write a longer
// one, and a Model may have one.
const maxName = 64

// A board is what the Run's status shows of a session: bounded, however long
// the session is.
type board struct {
	mu      sync.Mutex
	shown   task.Progress
	effects sync.Mutex // held while the beginning of effects is being told
	warned  map[string]bool
}

func newBoard(c Config) *board {
	return &board{
		shown:  task.Progress{Version: task.Version, Attempt: c.Task.Attempt, Model: c.Model.Name},
		warned: map[string]bool{},
	}
}

// begin shows a step as the one under way, from the moment at which it is
// first shown.
func (b *board) begin(number int64, kind, name string, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.shown.Step; s != nil && s.Number == number && s.Kind == kind && s.Name == name {
		return
	}
	b.shown.Step = &task.Current{Number: number, Kind: kind, Name: name, StartedAt: at.UTC().Format(time.RFC3339)}
}

// done moves a step among the last ones.
func (b *board) done(r task.Recent) {
	r.Name = task.Cut(r.Name, maxName)
	r.Summary = task.Cut(redact.Printable(r.Summary), task.MaxSummary)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shown.Recent = append(b.shown.Recent, r)
	if extra := len(b.shown.Recent) - task.MaxRecent; extra > 0 {
		b.shown.Recent = slices.Delete(b.shown.Recent, 0, extra)
	}
}

// rest shows that nothing is under way.
func (b *board) rest() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shown.Step = nil
}

// beginEffects shows that effects begin, and says whether it was not shown
// before. Others wait until the first has called release.
func (b *board) beginEffects() (first bool, release func()) {
	b.effects.Lock()
	b.mu.Lock()
	defer b.mu.Unlock()
	first = b.shown.Effects == ""
	b.shown.Effects = task.EffectsBegun
	return first, b.effects.Unlock
}

// noEffects takes back what could not be told.
func (b *board) noEffects() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shown.Effects = ""
}

// progress is the board with the numbers of this moment.
func (r *run) progress() task.Progress {
	r.board.mu.Lock()
	p := r.board.shown
	p.Recent = slices.Clone(p.Recent)
	r.board.mu.Unlock()
	used := r.Task.Meter
	if r.meter != nil {
		used = r.meter.read()
	}
	p.Counts, p.Usage = task.CountsOf(used), task.UsageOf(used)
	return p
}

// started shows a call that is about to run.
func (r *run) started(j *job) {
	turn := r.meter.read().Steps
	r.board.begin(turn, task.KindTool, j.call.Name, r.Now())
	r.Report.Report(r.progress)
	r.Events.Emit(fmt.Sprintf("Calling %s %s", j.call.Name, oneLine(j.call.Args)),
		events.CallStarted{ID: j.call.ID, Name: j.call.Name, Args: j.call.Args})
}

// oneLine is arguments as a line for people, however the model laid them out.
func oneLine(args json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, args) != nil {
		return ""
	}
	return task.Cut(b.String(), task.MaxSummary)
}

// finished shows a call that has its result.
func (r *run) finished(j *job, s step.Step, res tool.Result) {
	res.Summary = r.Redact.String(res.Summary) // whole: a piece of a secret would not be known
	line := summarizeCall(j, s, res)
	r.board.done(task.Recent{
		Step: r.meter.read().Steps, Kind: task.KindTool, Name: j.call.Name,
		Summary: line, DurationMs: s.Duration.Milliseconds(),
	})
	r.Events.Emit(fmt.Sprintf("%s: %s", j.call.Name, line), events.CallFinished{
		ID: j.call.ID, Name: j.call.Name, IsError: s.IsError, Summary: line, DurationMs: s.Duration.Milliseconds(),
	})
	r.emitStep(s)
	r.Report.Report(r.progress)
}

func (r *run) emitStep(s step.Step) {
	r.Events.Emit(fmt.Sprintf("%s: %s", s.Role, summarize(s)), events.StepFinished{Step: s})
}

// warnOfLimits says, once for each, that most of a limit is used.
func (r *run) warnOfLimits() {
	for _, g := range near(r.meter.read(), r.Task.Limits) {
		if r.board.warned[g.name] {
			continue
		}
		r.board.warned[g.name] = true
		r.Events.Emit(fmt.Sprintf("Used %s of %s %s", g.show(g.used), g.show(g.max), g.name),
			events.LimitNear{Limit: g.name, Used: g.used, Max: g.max})
	}
}

// summarize is an answer in a line.
func summarize(s step.Step) string {
	if text := firstLine(s.Text()); text != "" {
		return text
	}
	names := make([]string, len(s.Calls))
	for i, c := range s.Calls {
		names[i] = c.Name
	}
	if len(names) == 0 {
		return "(empty)"
	}
	return "calls " + strings.Join(names, ", ")
}

// summarizeCall is a call and what came of it in a line.
func summarizeCall(j *job, s step.Step, res tool.Result) string {
	switch {
	case s.IsError:
		return firstLine(s.Text())
	case res.Summary != "":
		return firstLine(res.Summary)
	}
	return task.Cut(string(j.call.Args), task.MaxSummary)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return task.Cut(line, task.MaxSummary)
}
