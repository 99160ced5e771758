package conversation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/internal/untrusted"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// promptLines and resultLines are how many lines of a prompt and of the result or the
	// output of a tool call are printed.
	promptLines = 20
	resultLines = 5
)

// printers print the events of each type, and return false if an event has no such data.
// Of types that are not here the message is printed.
var printers = map[step.EventType]func(*Printer, step.Event) bool{
	step.EventRunStarted:    printing((*Printer).runStarted),
	step.EventStepStarted:   skip,
	step.EventThinkingDelta: printing((*Printer).thinkingDelta),
	step.EventTextDelta:     printing((*Printer).textDelta),
	step.EventReset:         printing((*Printer).reset),
	step.EventCallStarted:   printing((*Printer).callStarted),
	step.EventCallOutput:    printing((*Printer).callOutput),
	step.EventCallDenied:    printing((*Printer).callDenied),
	step.EventCallFinished:  skip, // the step of the result follows
	step.EventStepFinished:  printing((*Printer).stepFinished),
	step.EventNudged:        skip, // the step with the notice says it
	step.EventCompacted:     warning,
	step.EventPending:       printing((*Printer).pending),
	step.EventDecided:       printing((*Printer).decided),
	step.EventChildStarted:  printing((*Printer).childStarted),
	step.EventChildFinished: printing((*Printer).childFinished),
	step.EventLimitNear:     warning,
	step.EventWarning:       warning,
	step.EventRepaired:      warning,
	step.EventHostRefused:   printing((*Printer).hostRefused),
	step.EventStateChanged:  warning,
	step.EventFile:          skip,
	step.EventFiles:         printing((*Printer).files),
	step.EventDropped:       printing((*Printer).dropped),
	step.EventRunFinished:   printing((*Printer).runFinished),
}

func skip(*Printer, step.Event) bool { return true }

func warning(p *Printer, e step.Event) bool {
	p.warn(cmp.Or(e.Message, string(e.Type)))
	return true
}

func printing[T any](show func(*Printer, step.Event, T)) func(*Printer, step.Event) bool {
	return func(p *Printer, e step.Event) bool {
		var data T
		if json.Unmarshal(e.Data, &data) != nil {
			return false
		}
		show(p, e, data)
		return true
	}
}

func (p *Printer) runStarted(e step.Event, d events.RunStarted) {
	text := fmt.Sprintf("Run %s, attempt %d: Agent %s, Model %s", e.Run, e.Attempt, d.Agent, d.Model)
	if d.Steps > 0 {
		text += fmt.Sprintf(", resumed after %s", count(d.Steps, "step"))
	}
	p.line(dim, "── ", text)
}

func (p *Printer) thinkingDelta(e step.Event, d events.ThinkingDelta) {
	p.sessionOf(e).thinking = true
	p.stream(source{e.Scope.Parent, "thinking"}, dim, "∴ ", d.Text)
}

func (p *Printer) textDelta(e step.Event, d events.TextDelta) {
	p.sessionOf(e).text = true
	p.stream(source{e.Scope.Parent, "text"}, "", "● ", d.Text)
}

func (p *Printer) reset(e step.Event, _ events.Reset) {
	s := p.sessionOf(e)
	s.text, s.thinking = false, false
	p.warn(cmp.Or(e.Message, "The answer begins again"))
}

func (p *Printer) callStarted(e step.Event, d events.CallStarted) {
	delete(p.sessionOf(e).requested, d.ID)
	p.line(cyan, "→ ", d.Name+" "+compact(d.Args))
}

// callOutput prints the first lines that a call writes while it runs.
func (p *Printer) callOutput(e step.Event, d events.CallOutput) {
	s := p.sessionOf(e)
	if s.output[d.ID] >= resultLines {
		return
	}
	text := d.Text
	if lines := strings.SplitAfter(text, "\n"); len(lines) > resultLines-s.output[d.ID] {
		text = strings.Join(lines[:resultLines-s.output[d.ID]], "") + "…"
	}
	s.output[d.ID] += max(strings.Count(d.Text, "\n"), 1)
	p.stream(source{d.ID, "output"}, dim, "  ", task.Cut(text, resultLines*p.opts.Width))
}

func (p *Printer) stepFinished(e step.Event, d events.StepFinished) {
	switch d.Step.Role {
	case step.RoleUser:
		p.userStep(d.Step)
	case step.RoleAssistant:
		p.assistantStep(e, d.Step)
	case step.RoleTool:
		p.toolStep(e, d.Step)
	default:
		p.line(dim, "· ", e.Message)
	}
}

func (p *Printer) userStep(s step.Step) {
	switch s.Note {
	case "", step.NoteMessage:
		p.block(bold, "▸ ", s.Text(), promptLines)
	default:
		p.block(dim, "· ", s.Text(), resultLines)
	}
}

// assistantStep prints what its deltas have not printed: with events: Steps there are none.
func (p *Printer) assistantStep(e step.Event, s step.Step) {
	known := p.sessionOf(e)
	for _, part := range s.Parts {
		switch {
		case part.Kind == step.PartThinking && !known.thinking:
			p.stream(source{e.Scope.Parent, "thinking"}, dim, "∴ ", part.Text)
		case part.Kind == step.PartText && !known.text:
			p.stream(source{e.Scope.Parent, "text"}, "", "● ", part.Text)
		}
	}
	p.endText()
	known.text, known.thinking = false, false
	for _, call := range s.Calls {
		known.requested[call.ID] = call
	}
	if e.Scope.Depth == 0 {
		p.answer = s.Text()
	}
}

// toolStep prints the result of a call. A call that was not started, because it was denied,
// is printed before it.
func (p *Printer) toolStep(e step.Event, s step.Step) {
	known := p.sessionOf(e)
	if call, is := known.requested[s.CallID]; is {
		p.line(cyan, "→ ", call.Name+" "+compact(call.Args))
		delete(known.requested, s.CallID)
	}
	mark, style, lines := "← ", dim, resultLines
	if s.IsError {
		style = red
	} else if known.output[s.CallID] > 0 {
		lines = 1
	}
	delete(known.output, s.CallID)
	took := ""
	if s.Duration >= 100*time.Millisecond {
		took = " (" + s.Duration.Round(100*time.Millisecond).String() + ")"
	}
	p.block(style, mark, s.Name+took+": "+s.Text(), lines)
}

func (p *Printer) pending(e step.Event, d events.Pending) {
	p.block(yellow+bold, "? ", cmp.Or(e.Message, d.Kind), 0)
	if d.Tool != "" {
		// An approver must see all of it.
		p.block(yellow, "  ", d.Tool+" "+d.Args, 0)
		if d.ArgsTruncated {
			p.line(yellow, "  ", "The arguments are cut: do not approve what you cannot read.")
		}
	}
	text := d.Kind + " " + d.ID + " waits for a Decision"
	if d.ExpiresAt != "" {
		text += " until " + d.ExpiresAt
	}
	p.line(yellow, "  ", text)
	if p.opts.Check == nil {
		return
	}
	if wrong := p.opts.Check(d); wrong != "" {
		p.warn(wrong)
	}
}

func (p *Printer) decided(e step.Event, d events.Decided) {
	if d.Refused != "" {
		p.warn(cmp.Or(e.Message, d.Refused))
		return
	}
	p.line(green, "✓ ", cmp.Or(e.Message, "Decided by "+d.By))
}

func (p *Printer) childStarted(e step.Event, d events.ChildStarted) {
	text := cmp.Or(e.Message, "Agent "+d.Agent+" begins")
	if d.Model != "" {
		text += ", Model " + d.Model
	}
	p.line(dim, "── ", text)
}

func (p *Printer) childFinished(e step.Event, d events.ChildFinished) {
	text := cmp.Or(e.Message, fmt.Sprintf("Agent %s ended: %s", d.Agent, d.Reason))
	p.line(dim, "── ", text+totals(d.Counts, d.Usage))
	delete(p.sessions, d.Session)
}

// dropped is silent about the numbers that a later attempt leaves free.
func (p *Printer) dropped(e step.Event, d events.Dropped) {
	if d.From > 1 {
		p.warn(cmp.Or(e.Message, "Events are missing"))
	}
}

// files warns of files that are not in the log.
func (p *Printer) files(e step.Event, d events.Files) {
	if len(d.LeftOut) > 0 {
		p.warn(cmp.Or(e.Message, "Files of the Run are not in the log"))
	}
}

// runFinished prints the result, unless it was the last answer, and what it took.
func (p *Printer) runFinished(e step.Event, d events.RunFinished) {
	p.indent = ""
	if d.Text != "" && d.Text != p.answer {
		p.block("", "● ", d.Text, 0)
	}
	if len(d.Output) > 0 {
		p.block("", "  ", compact(d.Output), 0)
	}
	p.refusedHosts()
	p.deniedTools()
	style := green + bold
	if d.Reason != task.ReasonFinished {
		style = red + bold
	}
	p.line(style, "■ ", cmp.Or(e.Message, string(d.Reason))+totals(d.Counts, d.Usage))
}

// block prints text with its line breaks. It is cut after a number of lines, each cut at
// the width; 0 lines prints all of it.
func (p *Printer) block(style, mark, text string, lines int) {
	p.endText()
	text = untrusted.Text(strings.TrimRight(text, " \n\r\t"))
	if lines > 0 {
		text = cutLines(text, lines, max(p.opts.Width-len(p.indent)-2, 20))
	}
	p.put(style, mark)
	p.hang = "  "
	p.put(style, text)
	p.endText()
}
