//go:build linux

package server

import (
	"os"
	"syscall"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/cgroup"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/proc"
)

// How often processes and memory are looked at while commands run. A look costs
// some microseconds for each process.
const (
	often  = 50 * time.Millisecond
	moreSo = 10 * time.Millisecond // when half of the memory is in use
)

// tightness is the part of the memory at which the largest command is ended, in
// tenths. The kernel would end the whole container a little later.
const tightness = 9

// A watch sees to it that nothing lives without a supervisor or beyond its
// means.
type watch struct {
	commands *commands
	sessions *sessions
	memory   cgroup.Memory
}

// run looks whenever commands run.
func (w *watch) run() {
	for range w.commands.busy {
		for len(w.commands.all()) > 0 {
			held := w.memory.Held()
			w.look(held)
			<-time.After(w.pause(held))
		}
		w.look(0)
	}
}

// pause is how long it does not look.
func (w *watch) pause(held int64) time.Duration {
	if limit := w.memory.Limit(); limit > 0 && held > limit/2 {
		return moreSo
	}
	return often
}

// look ends what has to end.
func (w *watch) look(held int64) {
	t, err := proc.Look()
	if err != nil {
		return // there is a next time
	}
	if len(t.Below(os.Getpid(), w.commands.known)) > 0 {
		w.commands.orphans() // somebody killed their supervisor
	}
	stopped := map[int]bool{}
	for _, p := range t.Children(os.Getpid()) {
		stopped[p.ID] = p.Stopped()
	}
	var largest *command
	var most int64
	for _, c := range w.commands.all() {
		if stopped[c.pid] {
			_ = syscall.Kill(c.pid, syscall.SIGKILL) // it supervises nothing anymore
		}
		below := t.Below(c.pid, nil)
		if c.processes > 0 && len(below) > c.processes {
			c.tell(sandbox.TooManyProcesses) // first, so that it is known as the cause
			w.commands.sweep(c)              // at once: it may be doubling
		}
		if uses := sum(below); uses > most {
			largest, most = c, uses
		}
	}
	w.relieve(held, largest)
}

// relieve ends the largest command when memory is nearly used up.
func (w *watch) relieve(held int64, largest *command) {
	limit := w.memory.Limit()
	if limit == 0 || held <= limit/10*tightness {
		w.sessions.memory(relaxed)
		return
	}
	w.sessions.memory(tight)
	if largest != nil {
		largest.tell(sandbox.OutOfMemory)
	}
}

func sum(all []proc.Process) int64 {
	var n int64
	for _, p := range all {
		n += p.Memory
	}
	return n
}
