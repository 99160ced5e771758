package attempt

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A statusReporter completes the reports of the engine. If the journal outlives the pod, open requests stay in the
// status when the pod ends: the next attempt repeats them, and users can decide meanwhile.
type statusReporter struct {
	to reporter
	// leaving reports that the pod is ending; nil: the journal is lost with it.
	leaving func() bool
	// refusals has the refused connections of commands; nil: there is no sandbox.
	refusals *refusals

	mu          sync.Mutex
	confinement *task.Confinement // nil: not known yet, or there is no sandbox
	state       string
	asked       []task.Pending
}

// Begin implements [engine.Reporter].
func (r *statusReporter) Begin(ctx context.Context, now func() task.Progress) error {
	return r.to.Begin(ctx, r.complete(now))
}

// Accepted implements [engine.Reporter].
func (r *statusReporter) Accepted() bool { return r.to.Accepted() }

// Report implements [engine.Reporter].
func (r *statusReporter) Report(now func() task.Progress) { r.to.Report(r.complete(now)) }

// Commit implements [engine.Reporter].
func (r *statusReporter) Commit(ctx context.Context, now func() task.Progress) error {
	return r.to.Commit(ctx, r.complete(now))
}

func (r *statusReporter) Close() { r.to.Close() }

// showConfinement adds the confinement of commands to every report.
func (r *statusReporter) showConfinement(c *task.Confinement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.confinement = c
}

func (r *statusReporter) complete(now func() task.Progress) func() task.Progress {
	return func() task.Progress {
		p := now()
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.confinement != nil {
			p.Confinement = r.confinement
		}
		if r.refusals != nil {
			p.Refused = r.refusals.report()
		}
		switch {
		case r.leaving == nil:
		case !r.leaving():
			r.state, r.asked = p.State, p.Pending
		case p.Result == nil && len(p.Pending) == 0 && len(r.asked) > 0:
			p.State, p.Pending = r.state, r.asked
		}
		return printableProgress(p)
	}
}

// maxAnnounced bounds how many refused hosts are emitted as events. Commands choose the names.
const maxAnnounced = 256

// refusals count the connections of commands that the egress proxy refuses, and denied tool calls. They are reported
// with the next progress and cause no write of their own.
type refusals struct {
	emit func(message string, e events.HostRefused)

	mu        sync.Mutex
	step      string // the id of the turn or call that began last, for the status
	total     task.Refused
	changed   bool
	shared    *task.Refused // the last report, which is not changed any more
	announced map[string]bool
}

func newRefusals(before *task.Refused, emit func(string, events.HostRefused)) *refusals {
	r := &refusals{emit: emit, shared: before, announced: map[string]bool{}}
	if before != nil {
		r.total = copied(before)
	}
	return r
}

// beginStep keeps which turn or call began last.
func (r *refusals) beginStep(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.step = id
}

// report returns the refusals until now, or nil.
func (r *refusals) report() *task.Refused {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed {
		shared := copied(&r.total)
		r.shared, r.changed = &shared, false
	}
	return r.shared
}

// add counts a refused connection. The host is empty if the command named none.
func (r *refusals) add(host, port, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total.Connections++
	r.changed = true
	number, err := strconv.Atoi(port)
	if host == "" || err != nil {
		return
	}
	r.announce(host, number, reason)
	at := slices.IndexFunc(r.total.Hosts, func(h task.RefusedHost) bool { return h.Host == host && h.Port == number })
	if at < 0 {
		if len(r.total.Hosts) == task.MaxHosts {
			return
		}
		at = len(r.total.Hosts)
		r.total.Hosts = append(r.total.Hosts, task.RefusedHost{Host: host, Port: number, FirstID: r.step})
	}
	r.total.Hosts[at].Count++
	r.total.Hosts[at].Reason = reason // the last one: the Agent may have changed since an earlier attempt
}

// deny counts a tool call that was denied.
func (r *refusals) deny(name, by, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total.ToolCalls++
	r.changed = true
	name = task.Cut(redact.Printable(name), task.MaxTool)
	at := slices.IndexFunc(r.total.Tools, func(t task.DeniedTool) bool { return t.Name == name && t.By == by })
	if at < 0 {
		if len(r.total.Tools) == task.MaxDeniedTools {
			return
		}
		at = len(r.total.Tools)
		r.total.Tools = append(r.total.Tools, task.DeniedTool{Name: name, By: by, FirstID: id})
	}
	r.total.Tools[at].Count++
}

// copied returns a deep copy.
func copied(of *task.Refused) task.Refused {
	return task.Refused{Connections: of.Connections, Hosts: slices.Clone(of.Hosts), ToolCalls: of.ToolCalls, Tools: slices.Clone(of.Tools)}
}

// announce emits an event the first time that this runner refuses a host and port.
func (r *refusals) announce(host string, port int, reason string) {
	name := net.JoinHostPort(host, strconv.Itoa(port))
	if r.announced[name] || len(r.announced) == maxAnnounced {
		return
	}
	r.announced[name] = true
	text := fmt.Sprintf("A command was refused a connection to %s: the host is not in sandbox.egress.hosts of the Agent", name)
	if reason == task.RefusedNotPublic {
		text = fmt.Sprintf("A command was refused a connection to %s: the name leads to no public address", name)
	}
	r.emit(text, events.HostRefused{Host: host, Port: port, Reason: reason, ID: r.step, Step: step.SeqOf(r.step)})
}

// printableProgress returns a report without control characters: most of its text comes from models, servers and names
// of files, and programs such as kubectl -o jsonpath print it to terminals unchanged.
func printableProgress(p task.Progress) task.Progress {
	p.Model = redact.Printable(p.Model)
	if w := p.ModelWait; w != nil {
		wait := *w
		wait.Model, wait.Message = redact.Printable(w.Model), redact.Printable(w.Message)
		p.ModelWait = &wait
	}
	if s := p.Step; s != nil {
		current := *s
		current.Name = redact.Printable(s.Name)
		p.Step = &current
	}
	p.Recent = slices.Clone(p.Recent)
	for i := range p.Recent {
		r := &p.Recent[i]
		r.Name, r.Summary = redact.Printable(r.Name), redact.Printable(r.Summary)
	}
	p.Pending = slices.Clone(p.Pending)
	for i := range p.Pending {
		q := &p.Pending[i]
		q.Agent, q.Question, q.Tool, q.Rule = redact.Printable(q.Agent), redact.Printable(q.Question), redact.Printable(q.Tool), redact.Printable(q.Rule)
		if q.Kind != task.PendingDelegation { // the input of a child Run, which is not changed
			q.Args, q.Schema = printableJSON(q.Args, task.MaxArgs), printableJSON(q.Schema, task.MaxSchema)
		}
	}
	p.Decided = slices.Clone(p.Decided)
	for i := range p.Decided {
		p.Decided[i].Refused = redact.Printable(p.Decided[i].Refused)
	}
	if p.Result != nil {
		r := printableResult(*p.Result)
		p.Result = &r
	}
	return p
}

// printableResult returns a result without control characters.
func printableResult(r task.Result) task.Result {
	r.Message, r.Warning, r.Text = redact.Printable(r.Message), redact.Printable(r.Warning), redact.Printable(r.Text)
	r.Output = printableJSON(r.Output, task.MaxOutput)
	r.Files = slices.Clone(r.Files)
	for i := range r.Files {
		r.Files[i].Path = printableLine(r.Files[i].Path)
	}
	if r.Published != nil {
		published := *r.Published
		published.Branch = printableLine(published.Branch)
		r.Published = &published
	}
	return r
}

// printableLine returns a name with a question mark in place of line ends and tabs.
func printableLine(name string) string {
	return strings.NewReplacer("\n", "?", "\t", "?").Replace(redact.Printable(name))
}

// printableJSON returns JSON, or a part of it, with characters escaped that [redact.Printable] would drop, so that the
// value stays the same. If the text would then have more than most bytes, it drops them.
func printableJSON(text string, most int) string {
	if redact.Printable(text) == text {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if shown := string(r); redact.Printable(shown) == shown {
			out.WriteRune(r)
		} else {
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	if out.Len() > most {
		return redact.Printable(text)
	}
	return out.String()
}
