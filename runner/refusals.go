package runner

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// maxAnnounced bounds the hosts of which an event is emitted. Commands choose the names.
const maxAnnounced = 256

// refusals count the connections of commands that the egress proxy refuses, and the tool calls
// that were denied. A refusal is reported with the next progress and causes no write of its own.
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

// report returns what was refused until now; nil: nothing.
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

// copied returns a copy that shares nothing.
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
