package conversation

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/internal/cli/transcript"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
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

// printFact prints the fact of an entry.
func (p *Printer) printFact(e transcript.Entry) {
	switch f := e.Fact.(type) {
	case transcript.AttemptContinued:
		p.line(dim, "── ", fmt.Sprintf("Attempt %d", e.Attempt))
	case transcript.Note:
		p.line(dim, "· ", f.Text)
	case transcript.Warning:
		p.warn(f.Text)
	case transcript.Gap:
		p.gap(e, f)
	case transcript.Prompt:
		p.prompt(f)
	case transcript.Thinking:
		p.streamTurn(e, f.Turn, textStyle{dim, "∴ "}, f.Text)
	case transcript.Text:
		p.streamTurn(e, f.Turn, textStyle{"", "● "}, f.Text)
	case events.Reset:
		p.warn(cmp.Or(e.Message, "The answer begins again"))
	case transcript.Answer:
		p.endText()
	case transcript.Call:
		p.call(e, f)
	case events.CallOutput:
		p.callOutput(f)
	case transcript.Result:
		p.result(f.Step)
	default:
		p.printEvent(e)
	}
}

// printEvent prints the facts that are not messages of an agent.
func (p *Printer) printEvent(e transcript.Entry) {
	switch f := e.Fact.(type) {
	case events.RunStarted:
		p.runStarted(e, f)
	case transcript.Request:
		p.request(e, f)
	case events.Decided:
		p.decided(e, f)
	case events.ChildStarted:
		p.childStarted(e, f)
	case events.ChildFinished:
		p.childFinished(e, f)
	case events.HostRefused:
		p.warn(cmp.Or(e.Message, "A command was refused a connection to "+f.Host))
	case events.Files:
		p.files(e, f)
	case transcript.End:
		p.end(e, f)
	}
}

func (p *Printer) gap(e transcript.Entry, g transcript.Gap) {
	if g.Announced {
		p.warn(cmp.Or(e.Message, "Events are missing"))
		return
	}
	p.warn("Events are missing here: of a long log only the last part is kept.")
}

func (p *Printer) runStarted(e transcript.Entry, d events.RunStarted) {
	text := fmt.Sprintf("Run %s, attempt %d: Agent %s, Model %s", e.Run, e.Attempt, d.Agent, d.Model)
	if d.Steps > 0 {
		text += ", " + resumed(d.Steps)
	}
	p.line(dim, "── ", text)
}

// resumed describes the size of a resumed session. The events count its messages as steps: one turn of an agent has
// several.
func resumed(messages int64) string { return "resumed with " + count(messages, "message") }

// call prints a call. A call that ends the Run is not printed: its result is printed at the end.
func (p *Printer) call(e transcript.Entry, f transcript.Call) {
	if task.EndsRun(f.Name) && e.Scope.Depth == 0 {
		p.line(cyan, "→ ", withID(f.ID, f.Name))
		return
	}
	p.line(cyan, "→ ", withID(f.ID, f.Name+" "+compact(f.Args)))
}

// callOutput prints the first lines that a call writes while it runs.
func (p *Printer) callOutput(d events.CallOutput) {
	shown := p.output[d.ID]
	if shown.lines >= resultLines {
		return
	}
	text, dots := d.Text, ""
	if lines := strings.SplitAfter(text, "\n"); len(lines) > resultLines-shown.lines {
		text, dots = strings.Join(lines[:resultLines-shown.lines], ""), "…"
	}
	printed := task.Cut(text, resultLines*p.opts.Width)
	shown.lines += max(strings.Count(d.Text, "\n"), 1)
	shown.text += text
	shown.isCut = shown.isCut || printed != text
	p.output[d.ID] = shown
	p.stream(source{d.ID, "output"}, dim, "  ", printed+dots)
}

func (p *Printer) prompt(f transcript.Prompt) {
	if f.FromUser {
		p.block(bold, "▸ ", f.Text, promptLines)
		return
	}
	p.block(dim, "· ", f.Text, resultLines)
}

// result prints the result of a call, without the lines that were printed while it ran.
func (p *Printer) result(s step.Step) {
	shown, text := p.output[s.CallID], s.Text()
	delete(p.output, s.CallID)
	style, lines := dim, resultLines
	switch {
	case s.IsError:
		style = red
	case task.EndsRun(s.Name):
		return
	case shown.lines > 0:
		text, lines = shown.rest(text)
	}
	took := ""
	if s.Duration >= 100*time.Millisecond {
		took = " (" + s.Duration.Round(100*time.Millisecond).String() + ")"
	}
	p.block(style, "← ", withID(s.CallID, s.Name+took+": "+text), lines)
}

// rest returns the part of a result after the printed output, and how many lines of it to print: a note about further
// lines, and the last line, which describes how the call ended. If the result does not begin with that output, it
// returns the whole result and 1.
func (o shownOutput) rest(result string) (text string, lines int) {
	rest, begins := strings.CutPrefix(result, o.text)
	if !begins || o.isCut {
		return result, 1
	}
	rest = strings.Trim(rest, "\n")
	at := strings.LastIndexByte(rest, '\n')
	if at < 0 {
		return rest, 1
	}
	if more := strings.Count(rest[:at], "\n") + 1; more > 1 {
		rest = fmt.Sprintf("… (%s more)\n%s", count(int64(more), "line"), rest[at+1:])
	}
	return rest, 2
}

func (p *Printer) request(e transcript.Entry, r transcript.Request) {
	text := r.Kind + " " + r.ID + " waits for a Decision"
	if r.ExpiresAt != "" {
		text += " until " + r.ExpiresAt
	}
	text = untrusted.Line(text, 400)
	if p.opts.NamesRequests && r.Kind != task.PendingDelegation {
		p.block(yellow+bold, "? ", text, 0)
	} else {
		p.wholeRequest(e, r, text)
	}
	if r.Doubt != "" {
		p.warn(r.Doubt)
	}
}

// wholeRequest prints the text of a request, and until when it can be decided.
func (p *Printer) wholeRequest(e transcript.Entry, r transcript.Request, waits string) {
	p.block(yellow+bold, "? ", cmp.Or(e.Message, r.Kind), 0)
	if r.Tool != "" {
		// An approver must see all of it.
		p.block(yellow, "  ", r.Tool+" "+r.Args, 0)
		if r.ArgsTruncated {
			p.line(yellow, "  ", "The arguments are cut: do not approve what you cannot read.")
		}
	}
	p.block(yellow, "  ", waits, 0)
}

func (p *Printer) decided(e transcript.Entry, d events.Decided) {
	if d.Refused != "" {
		p.warn(cmp.Or(e.Message, d.Refused))
		return
	}
	style, mark := green, "✓ "
	if d.Type == "Deny" {
		style, mark = red, "✗ "
	}
	p.line(style, mark, cmp.Or(e.Message, "Decided by "+d.By))
}

func (p *Printer) childStarted(e transcript.Entry, d events.ChildStarted) {
	if d.Model == "" { // a child Run, of which the message has more
		p.line(dim, "── ", cmp.Or(e.Message, "Agent "+d.Agent+" begins"))
		return
	}
	text := "Agent " + d.Agent + " begins, Model " + d.Model
	if d.Steps > 0 {
		text += ", " + resumed(d.Steps)
	}
	p.line(dim, "── ", text)
}

func (p *Printer) childFinished(e transcript.Entry, d events.ChildFinished) {
	text := cmp.Or(e.Message, fmt.Sprintf("Agent %s ended: %s", d.Agent, d.Reason))
	p.line(dim, "── ", text+totals(d.Counts, d.Usage))
}

// files warns of files that are not in the log.
func (p *Printer) files(e transcript.Entry, d events.Files) {
	if len(d.LeftOut) > 0 {
		p.warn(cmp.Or(e.Message, "Files of the Run are not in the log"))
	}
}

// end prints the result, unless it equals the last answer, and the usage.
func (p *Printer) end(e transcript.Entry, d transcript.End) {
	p.indent = ""
	if d.Text != "" && !d.IsLastAnswer && d.Text != compact(d.Output) {
		p.block("", "● ", d.Text, 0)
	}
	if len(d.Output) > 0 {
		p.block("", "  ", compact(d.Output), 0)
	}
	p.refusedHosts(d.RefusedHosts)
	p.deniedTools(d.DeniedTools)
	style := green + bold
	if d.Reason != task.ReasonFinished {
		style = red + bold
	}
	p.block(style, "■ ", untrusted.Line(cmp.Or(e.Message, string(d.Reason)), task.MaxMessage)+totals(d.Counts, d.Usage), 0)
}

// block prints text with its line breaks, at most a number of lines, each cut at the width; 0 lines: all of it.
func (p *Printer) block(style, mark, text string, lines int) {
	p.endText()
	text = untrusted.Text(strings.TrimRight(text, " \n\r\t"))
	if lines > 0 {
		text = cutLines(text, lines, max(p.opts.Width-len(p.indent)-2, 20))
	}
	p.mark(style, mark)
	p.put(style, text)
	p.endText()
}

// refusedShown is how many refused hosts and denied tools the summary names.
const refusedShown = 5

// refusedHosts prints the hosts that commands were refused.
func (p *Printer) refusedHosts(names []string) {
	if len(names) > 0 {
		p.warn("Commands were refused connections to " + firstNames(names))
	}
}

// deniedTools prints the tools whose calls were denied.
func (p *Printer) deniedTools(tools []transcript.DeniedTool) {
	if len(tools) == 0 {
		return
	}
	var names []string
	for _, tool := range tools {
		name := tool.Name
		if tool.Calls > 1 {
			name = fmt.Sprintf("%s (%d)", tool.Name, tool.Calls)
		}
		names = append(names, name)
	}
	p.warn("Tool calls were denied: " + firstNames(names))
}

func firstNames(names []string) string {
	text := strings.Join(names[:min(len(names), refusedShown)], ", ")
	if more := len(names) - refusedShown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
