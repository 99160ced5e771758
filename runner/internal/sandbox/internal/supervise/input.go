//go:build linux

package supervise

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

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
func (i *input) add(data []byte) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.waiting)+len(data) > frame.Window {
		return fmt.Errorf("%w: more stdin than the window", frame.ErrProtocol)
	}
	if !i.ended {
		i.waiting = append(i.waiting, data...)
		i.signalChange()
	}
	return nil
}

// end records that no more data follows.
func (i *input) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ended = true
	i.signalChange()
}

// close discards what was not read.
func (i *input) close() {
	_ = i.pipe.Close() // the command has ended
	i.end()
}

func (i *input) signalChange() {
	select {
	case i.changed <- struct{}{}:
	default:
	}
}

// forward writes buffered data to the command until the end. Data is dropped if the
// command has closed its stdin.
func (i *input) forward() {
	defer i.pipe.Close()
	for {
		data, ended := i.takeAll()
		switch {
		case len(data) > 0:
			_, _ = i.pipe.Write(data)
			if err := i.runner.SendCredit(len(data)); err != nil {
				return
			}
		case ended:
			return
		default:
			<-i.changed
		}
	}
}

// takeAll returns and clears the buffer.
func (i *input) takeAll() ([]byte, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	data := i.waiting
	i.waiting = nil
	return data, i.ended
}

// maxDrain bounds what is read of each pipe after all processes have ended: the
// capacity of a pipe. A process outside may still write to it.
const maxDrain = 1 << 20

// An output sends the output of a command to the runner.
type output struct {
	runner *frame.Conn
	pipes  []*os.File // stdout, stderr, control
	limit  int64      // of stdout and stderr together; zero: no limit

	passed  atomic.Int64 // bytes read of those two
	dropped atomic.Int64
	all     sync.WaitGroup
}

func newOutput(runner *frame.Conn, pipes []*os.File, limit int64) *output {
	return &output{runner: runner, pipes: pipes, limit: limit}
}

// start starts to read the pipes.
func (o *output) start() {
	for i, kind := range []frame.Kind{frame.Stdout, frame.Stderr, frame.Control} {
		o.all.Go(func() { o.copy(kind, o.pipes[i]) })
	}
}

// finish sends the rest in the pipes and returns how many bytes were dropped. It does not wait for processes that hold
// a pipe open.
func (o *output) finish() int64 {
	for _, p := range o.pipes {
		_ = p.SetReadDeadline(time.Unix(1, 0)) // fails only if it was closed
	}
	o.all.Wait()
	return o.dropped.Load()
}

// copy sends the content of one pipe, until its end or finish.
func (o *output) copy(kind frame.Kind, pipe *os.File) {
	defer pipe.Close()
	buffer := make([]byte, frame.Max)
	for {
		n, err := pipe.Read(buffer)
		o.forward(kind, buffer[:n])
		if err != nil {
			break
		}
	}
	o.drain(kind, pipe, buffer)
}

// drain sends what a pipe still holds, without waiting for more.
func (o *output) drain(kind frame.Kind, pipe *os.File, buffer []byte) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	for taken := 0; taken < maxDrain; {
		n := 0
		err := raw.Control(func(fd uintptr) { n, _ = unix.Read(int(fd), buffer) })
		if err != nil || n <= 0 {
			return
		}
		taken += n
		o.forward(kind, buffer[:n])
	}
}

// forward sends data within the limit and counts the rest as dropped.
func (o *output) forward(kind frame.Kind, data []byte) {
	if kind != frame.Control && o.limit > 0 {
		before := o.passed.Add(int64(len(data))) - int64(len(data))
		room := int(max(min(o.limit-before, int64(len(data))), 0))
		o.dropped.Add(int64(len(data) - room))
		data = data[:room]
	}
	if len(data) > 0 {
		_ = o.runner.Send(kind, data) // followRunner notices a lost runner
	}
}
