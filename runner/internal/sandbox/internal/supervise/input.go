//go:build linux

package supervise

import (
	"fmt"
	"os"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/frame"
)

// An input holds what the runner sent for the command's stdin until the command
// reads it, which is never more than the window of the protocol. The connection
// is read on meanwhile: who wants to kill must be heard.
type input struct {
	runner  *frame.Conn
	pipe    *os.File
	changed chan struct{} // that something came, or the end

	mu      sync.Mutex
	waiting []byte
	ended   bool
}

func newInput(runner *frame.Conn, pipe *os.File) *input {
	in := &input{runner: runner, pipe: pipe, changed: make(chan struct{}, 1)}
	go in.forward()
	return in
}

// add keeps what came.
func (in *input) add(data []byte) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.waiting)+len(data) > frame.Window {
		return fmt.Errorf("%w: more stdin than the window", frame.ErrProtocol)
	}
	if !in.ended {
		in.waiting = append(in.waiting, data...)
		in.signalChange()
	}
	return nil
}

// end notes that nothing more comes.
func (in *input) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.ended = true
	in.signalChange()
}

// close gives up what is still waiting.
func (in *input) close() {
	_ = in.pipe.Close() // nobody reads it anymore
	in.end()
}

func (in *input) signalChange() {
	select {
	case in.changed <- struct{}{}:
	default:
	}
}

// forward passes on what came, until the end. What a command does not want to read
// is dropped, as the runner learns nothing from it.
func (in *input) forward() {
	defer in.pipe.Close()
	for {
		data, ended := in.takeAll()
		switch {
		case len(data) > 0:
			_, _ = in.pipe.Write(data)
			if err := in.runner.SendCredit(len(data)); err != nil {
				return
			}
		case ended:
			return
		default:
			<-in.changed
		}
	}
}

// takeAll is what waits, all of it.
func (in *input) takeAll() ([]byte, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	data := in.waiting
	in.waiting = nil
	return data, in.ended
}
