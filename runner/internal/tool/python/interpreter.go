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

// maxBetween bounds what is kept of output between calls, by threads and children of
// earlier code, in bytes.
const maxBetween = 64 << 10

// An interpreter is a process that runs code. One goroutine reads its output; one
// call at a time sends a request.
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
	current *pending // nil between calls
	last    int64    // request
}

// A pending request waits for its answer.
type pending struct {
	id       int64
	record   *output.Record
	answer   *answer
	printed  bool          // its output is complete
	answered chan struct{} // closed when the answer and the output are complete
}

// newInterpreter returns an interpreter for a process, which end ends. It is ready
// when the returned request is answered.
func newInterpreter(p sandbox.Process, end context.CancelFunc, rec *output.Record) (*interpreter, *pending) {
	ready := &pending{record: rec, printed: true, answered: make(chan struct{})}
	i := &interpreter{
		process: p, end: end, done: make(chan struct{}),
		between: output.NewRing(maxBetween), current: ready,
	}
	go i.receive()
	return i, ready
}

// receive reads output and answers until the interpreter ends.
func (i *interpreter) receive() {
	defer i.end()
	var wrong error
	for chunk := range i.process.Output() {
		if err := i.handleChunk(chunk); err != nil && wrong == nil {
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

func (i *interpreter) handleChunk(chunk sandbox.Chunk) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if chunk.Stream != sandbox.Control {
		before, after, found := i.split.write(chunk.Data)
		i.printed(before)
		if found {
			i.current.printed = true
			i.completeIfAnswered()
			i.between.Write(after)
		}
		return nil
	}
	answers, err := i.decoder.write(chunk.Data)
	for _, a := range answers {
		if i.current != nil && i.current.id == a.ID && i.current.answer == nil {
			i.current.answer = &a
			i.completeIfAnswered()
		}
	}
	return err
}

// printed adds output to the current request, or to the output between calls.
func (i *interpreter) printed(p []byte) {
	if i.current != nil && len(p) > 0 {
		i.current.record.Write(p)
		return
	}
	i.between.Write(p)
}

func (i *interpreter) completeIfAnswered() {
	if a := i.current; a.answer != nil && a.printed {
		i.current = nil
		close(a.answered)
	}
}

// abandon stops waiting for an answer. Further output does not belong to it.
func (i *interpreter) abandon(a *pending) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.current == a {
		i.current = nil
		i.printed(i.split.held)
		i.split = splitter{}
	}
}

// ask sends a request. It returns what was printed since the last one.
func (i *interpreter) ask(r request, rec *output.Record) (a *pending, between string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.last++
	r.ID, r.Mark = i.last, "\x00"+rand.Text()+"\x00"
	a = &pending{id: r.ID, record: rec, answered: make(chan struct{})}
	text, lost := i.between.Since(0)
	between = output.Clean(text)
	if lost > 0 {
		between = fmt.Sprintf("[%d bytes before this are not kept]\n%s", lost, between)
	}
	i.between = output.NewRing(maxBetween)
	i.current, i.split = a, splitter{mark: []byte(r.Mark)}
	i.send(r)
	return a, between
}

// interrupt raises KeyboardInterrupt in the code of a request.
func (i *interpreter) interrupt(a *pending) { i.send(request{ID: a.id, Interrupt: true}) }

// send sends a request without waiting until the interpreter reads it.
func (i *interpreter) send(r request) {
	go func() {
		i.writing.Lock()
		defer i.writing.Unlock()
		data, err := encode(r)
		if err == nil {
			_, err = i.process.Stdin().Write(data)
		}
		if err != nil {
			i.end() // it does not read requests any more
		}
	}()
}

// failed reports whether the interpreter ended without success.
func (i *interpreter) failed() bool { return i.err != nil || output.Failed(i.exit) }

// ended describes how the interpreter ended.
func (i *interpreter) ended() string {
	if errors.Is(i.err, errProtocol) {
		return i.err.Error()
	}
	if i.err != nil {
		return fmt.Sprintf("for an unknown reason: %v", i.err)
	}
	return output.Ended(i.exit, 0)
}
