package transcript

import (
	"cmp"
	"encoding/json"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// readers read the events of each type, and return false if the data of an event is not of its type. The message of an
// event of any other type is a Note.
var readers = map[step.EventType]func(*Reader, events.Line) bool{
	step.EventRunStarted:    fact[events.RunStarted],
	step.EventStepStarted:   reading((*Reader).stepStarted),
	step.EventThinkingDelta: reading((*Reader).thinkingDelta),
	step.EventTextDelta:     reading((*Reader).textDelta),
	step.EventReset:         reading((*Reader).reset),
	step.EventCallStarted:   reading((*Reader).callStarted),
	step.EventCallOutput:    fact[events.CallOutput],
	step.EventCallDenied:    reading((*Reader).callDenied),
	step.EventCallFinished:  skip, // the step of the result follows
	step.EventStepFinished:  reading((*Reader).stepFinished),
	step.EventNudged:        skip, // the step with the notice has its text
	step.EventCompacted:     warning,
	step.EventPending:       reading((*Reader).pending),
	step.EventDecided:       fact[events.Decided],
	step.EventChildStarted:  fact[events.ChildStarted],
	step.EventChildFinished: reading((*Reader).childFinished),
	step.EventLimitNear:     warning,
	step.EventWarning:       warning,
	step.EventRepaired:      warning,
	step.EventModelRouted:   warning,
	step.EventHostRefused:   reading((*Reader).hostRefused),
	step.EventStateChanged:  warning,
	step.EventFile:          skip,
	step.EventFiles:         fact[events.Files],
	step.EventDropped:       reading((*Reader).dropped),
	step.EventRunFinished:   reading((*Reader).runFinished),
}

func skip(*Reader, events.Line) bool { return true }

func warning(r *Reader, e events.Line) bool {
	r.add(e, Warning{cmp.Or(e.Message, string(e.Type))})
	return true
}

// fact adds the payload of an event.
func fact[T any](r *Reader, e events.Line) bool {
	return reading(func(r *Reader, e events.Line, data T) { r.add(e, data) })(r, e)
}

func reading[T any](read func(*Reader, events.Line, T)) func(*Reader, events.Line) bool {
	return func(r *Reader, e events.Line) bool {
		var data T
		if json.Unmarshal(e.Data, &data) != nil {
			return false
		}
		read(r, e, data)
		return true
	}
}

// stepStarted keeps the id of the turn for its texts. Older runners give the turn no id.
func (r *Reader) stepStarted(e events.Line, d events.StepStarted) {
	r.sessionOf(e).turn = d.ID
}

func (r *Reader) thinkingDelta(e events.Line, d events.ThinkingDelta) {
	s := r.sessionOf(e)
	s.thinking = true
	r.add(e, Thinking{s.turn, d.Text})
}

func (r *Reader) textDelta(e events.Line, d events.TextDelta) {
	s := r.sessionOf(e)
	s.text = true
	r.add(e, Text{s.turn, d.Text})
}

func (r *Reader) reset(e events.Line, d events.Reset) {
	s := r.sessionOf(e)
	s.text, s.thinking = false, false
	r.add(e, d)
}

func (r *Reader) callStarted(e events.Line, d events.CallStarted) {
	delete(r.sessionOf(e).requested, d.ID)
	r.add(e, Call{step.Call(d)})
}

func (r *Reader) stepFinished(e events.Line, d events.StepFinished) {
	switch s := d.Step; s.Role {
	case step.RoleUser:
		r.add(e, Prompt{s.Text(), s.Note == "" || s.Note == step.NoteMessage})
	case step.RoleAssistant:
		r.assistantStep(e, s)
	case step.RoleTool:
		r.toolStep(e, s)
	default:
		r.add(e, Note{e.Message})
	}
}

// assistantStep adds texts without deltas: with log: Steps there are no deltas.
func (r *Reader) assistantStep(e events.Line, s step.Step) {
	known, id := r.sessionOf(e), ""
	if s.Seq > 0 {
		id = step.ID(e.Scope.Parent, s.Seq)
	}
	for _, part := range s.Parts {
		switch {
		case part.Kind == step.PartThinking && !known.thinking:
			r.add(e, Thinking{id, part.Text})
		case part.Kind == step.PartText && !known.text:
			r.add(e, Text{id, part.Text})
		}
	}
	known.turn, known.text, known.thinking = "", false, false
	for _, call := range s.Calls {
		known.requested[call.ID] = call
	}
	if e.Scope.Depth == 0 {
		r.answer = s.Text()
	}
	r.add(e, Answer{s})
}

// toolStep adds the result of a call. A call that was not started, because it was denied, is added
// before it.
func (r *Reader) toolStep(e events.Line, s step.Step) {
	known := r.sessionOf(e)
	if call, is := known.requested[s.CallID]; is {
		r.add(e, Call{call})
		delete(known.requested, s.CallID)
	}
	r.add(e, Result{s})
}

func (r *Reader) pending(e events.Line, d events.Pending) {
	doubt := ""
	if r.opts.Check != nil {
		doubt = r.opts.Check(d)
	}
	r.add(e, Request{d, doubt})
}

func (r *Reader) childFinished(e events.Line, d events.ChildFinished) {
	r.add(e, d)
	delete(r.sessions, d.Session)
}

// dropped adds no entry for the numbers that a later attempt leaves free.
func (r *Reader) dropped(e events.Line, d events.Dropped) {
	if d.From > 1 {
		r.add(e, Gap{Announced: true})
	}
}

func (r *Reader) hostRefused(e events.Line, d events.HostRefused) {
	r.refused[net.JoinHostPort(d.Host, strconv.Itoa(d.Port))] = true
	r.add(e, d)
}

// callDenied counts a denied call. Its result follows.
func (r *Reader) callDenied(e events.Line, d events.CallDenied) {
	r.denied[d.Name]++
	r.add(e, d)
}

func (r *Reader) runFinished(e events.Line, d events.RunFinished) {
	end := End{RunFinished: d, IsLastAnswer: d.Text == r.answer, RefusedHosts: slices.Sorted(maps.Keys(r.refused))}
	for _, name := range slices.Sorted(maps.Keys(r.denied)) {
		end.DeniedTools = append(end.DeniedTools, DeniedTool{name, r.denied[name]})
	}
	r.add(e, end)
}

// A Sink receives the entries of a transcript, in order.
type Sink interface{ Add(e Entry) }

// An Entry is an event of a Run. Its texts come from models, tools and users, and may contain anything.
type Entry struct {
	// Time is zero if the log does not have it.
	Time    time.Time
	Run     string
	Attempt int
	// Scope is the session of the event.
	Scope step.Scope
	// Message describes the event; it may be empty.
	Message string
	Fact    Fact
}

// A Fact is the data of an Entry: a type of this package or, if the Reader has nothing to add, the
// payload of an event: RunStarted, Reset, CallOutput, CallDenied, Decided,
// ChildStarted, ChildFinished, HostRefused or Files.
type Fact any

// AttemptContinued means that events of another attempt follow whose beginning is not in the log.
type AttemptContinued struct{}

// Gap means that events are missing. Announced is whether the runner left them out itself; otherwise the kubelet has
// deleted the beginning of a long log.
type Gap struct{ Announced bool }

// Warning is a warning for users.
type Warning struct{ Text string }

// Note is a line of a custom runner, or an event of an unknown type.
type Note struct{ Text string }

// Prompt is a message to the model.
type Prompt struct {
	Text string
	// FromUser is whether a user wrote it. Other messages come from the runner and from hooks.
	FromUser bool
}

// Text is a piece of an answer of the model. Turn is the id of the turn; empty: the log does not have it.
type Text struct{ Turn, Text string }

// Thinking is a piece of the model's reasoning before its answer, in the Turn with this id.
type Thinking struct{ Turn, Text string }

// Answer ends an answer of the model. Its texts came before it.
type Answer struct{ Step step.Step }

// Call is a tool call that is started, or that was refused: its result follows.
type Call struct{ step.Call }

// Result is the result of a tool call.
type Result struct{ Step step.Step }

// Request is a request of the Run to users.
type Request struct {
	events.Pending
	// Doubt is why the request may be invalid; empty: no reason is known.
	Doubt string
}

// End is the end of a Run, or of an attempt that a later one continues.
type End struct {
	events.RunFinished
	// IsLastAnswer is whether the text of the result is the last answer of the model.
	IsLastAnswer bool
	// RefusedHosts are the hosts of refused connections of commands in all attempts, with ports, sorted.
	RefusedHosts []string
	// DeniedTools are the tools with denied calls in all attempts, sorted by name.
	DeniedTools []DeniedTool
}

// DeniedTool is a tool with denied calls.
type DeniedTool struct {
	Name  string
	Calls int
}
