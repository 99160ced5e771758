package python

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/output"
)

//go:embed driver.py
var driver string

// maxBetween is how much is kept of what is printed while nothing was asked, by
// threads and children of earlier code.
const maxBetween = 64 << 10

// An interpreter is a process that runs code. One goroutine attends to it; one
// call at a time asks.
type interpreter struct {
	process sandbox.Process
	end     context.CancelFunc
	done    chan struct{} // closed when it ended; exit and err are set then
	exit    sandbox.Exit
	err     error

	writing sync.Mutex // to stdin

	mu      sync.Mutex
	decoder decoder
	split   splitter
	between *output.Ring
	current *asked // nil: nothing is asked
	last    int64  // request
}

// An asked request is waiting for its answer.
type asked struct {
	id       int64
	record   *output.Record
	answer   *answer
	printed  bool          // all that belongs to it
	answered chan struct{} // closed when both are there
}

// attach makes an interpreter of a process that end ends. It is ready when the
// request that is returned is answered.
func attach(p sandbox.Process, end context.CancelFunc, rec *output.Record) (*interpreter, *asked) {
	ready := &asked{record: rec, printed: true, answered: make(chan struct{})}
	i := &interpreter{
		process: p, end: end, done: make(chan struct{}),
		between: output.NewRing(maxBetween), current: ready,
	}
	go i.attend()
	return i, ready
}

// attend takes what the interpreter says, until it ends.
func (i *interpreter) attend() {
	defer i.end()
	var wrong error
	for chunk := range i.process.Output() {
		if err := i.take(chunk); err != nil && wrong == nil {
			wrong = err
			i.end()
		}
	}
	i.exit, i.err = i.process.Wait(context.Background()) // it has ended
	if wrong != nil {
		i.err = wrong
	}
	close(i.done)
}

func (i *interpreter) take(chunk sandbox.Chunk) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if chunk.Stream != sandbox.Control {
		before, after, found := i.split.write(chunk.Data)
		i.printed(before)
		if found {
			i.current.printed = true
			i.settle()
			i.between.Write(after)
		}
		return nil
	}
	answers, err := i.decoder.write(chunk.Data)
	for _, a := range answers {
		if i.current != nil && i.current.id == a.ID && i.current.answer == nil {
			i.current.answer = &a
			i.settle()
		}
	}
	return err
}

// printed takes output, for whoever is waiting for some.
func (i *interpreter) printed(p []byte) {
	if i.current != nil && len(p) > 0 {
		i.current.record.Write(p)
		return
	}
	i.between.Write(p)
}

func (i *interpreter) settle() {
	if a := i.current; a.answer != nil && a.printed {
		i.current = nil
		close(a.answered)
	}
}

// leave ends the waiting for an answer: what comes is no longer for it.
func (i *interpreter) leave(a *asked) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.current == a {
		i.current = nil
		i.printed(i.split.held)
		i.split = splitter{}
	}
}

// ask asks for something. What was printed since the last request is returned.
func (i *interpreter) ask(r request, rec *output.Record) (a *asked, between string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.last++
	r.ID, r.Mark = i.last, "\x00"+rand.Text()+"\x00"
	a = &asked{id: r.ID, record: rec, answered: make(chan struct{})}
	text, lost := i.between.Since(0)
	between = output.Clean(text)
	if lost > 0 {
		between = fmt.Sprintf("[%d bytes before this are not kept]\n%s", lost, between)
	}
	i.between = output.NewRing(maxBetween)
	i.current, i.split = a, splitter{mark: []byte(r.Mark)}
	i.tell(r)
	return a, between
}

// interrupt raises KeyboardInterrupt in the code of a request.
func (i *interpreter) interrupt(a *asked) { i.tell(request{ID: a.id, Interrupt: true}) }

// tell sends a request. An interpreter that does not read it does not hold up
// who asks.
func (i *interpreter) tell(r request) {
	go func() {
		i.writing.Lock()
		defer i.writing.Unlock()
		data, err := encode(r)
		if err == nil {
			_, err = i.process.Stdin().Write(data)
		}
		if err != nil {
			i.end() // it hears nothing any more
		}
	}()
}

// ended says how the interpreter ended.
func (i *interpreter) ended() string {
	if errors.Is(i.err, errNonsense) {
		return i.err.Error()
	}
	if i.err != nil {
		return fmt.Sprintf("for an unknown reason: %v", i.err)
	}
	if killed := output.Killed(i.exit, 0); killed != "" {
		return killed
	}
	return fmt.Sprintf("exit code: %d", i.exit.Code)
}
