//go:build linux

package supervise

import (
	"fmt"
	"os"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/frame"
)

// An input buffers stdin of the command, at most the window of the protocol, until
// the command reads it. Meanwhile the connection is still read, so that a request
// to kill the command is received.
type input struct {
	runner  *frame.Conn
	pipe    *os.File
	changed chan struct{} // signals new data or the end

	mu      sync.Mutex
	waiting []byte
	ended   bool
}

func newInput(runner *frame.Conn, pipe *os.File) *input {
	in := &input{runner: runner, pipe: pipe, changed: make(chan struct{}, 1)}
	go in.forward()
	return in
}

// add buffers data.
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

// end records that no more data follows.
func (in *input) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.ended = true
	in.signalChange()
}

// close discards what was not read.
func (in *input) close() {
	_ = in.pipe.Close() // the command has ended
	in.end()
}

func (in *input) signalChange() {
	select {
	case in.changed <- struct{}{}:
	default:
	}
}

// forward writes buffered data to the command until the end. Data is dropped if the
// command has closed its stdin.
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

// takeAll returns and clears the buffer.
func (in *input) takeAll() ([]byte, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	data := in.waiting
	in.waiting = nil
	return data, in.ended
}
