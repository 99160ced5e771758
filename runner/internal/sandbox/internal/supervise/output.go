//go:build linux

package supervise

import (
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/frame"
)

// maxDrain bounds what is taken from each pipe after everything has ended. It
// is as much as a pipe holds at most; somebody outside may go on filling it.
const maxDrain = 1 << 20

// An output passes on what a command writes.
type output struct {
	runner *frame.Conn
	pipes  []*os.File // stdout, stderr, control
	limit  int64      // of stdout and stderr together; zero: none

	passed  atomic.Int64 // what was read of those two
	dropped atomic.Int64
	all     sync.WaitGroup
}

func newOutput(runner *frame.Conn, pipes []*os.File, limit int64) *output {
	return &output{runner: runner, pipes: pipes, limit: limit}
}

// start starts passing on.
func (o *output) start() {
	for i, kind := range []frame.Kind{frame.Stdout, frame.Stderr, frame.Control} {
		o.all.Go(func() { o.copy(kind, o.pipes[i]) })
	}
}

// finish passes on what is left and says how much was dropped. It does not wait
// for whoever holds a pipe open.
func (o *output) finish() int64 {
	for _, p := range o.pipes {
		_ = p.SetReadDeadline(time.Unix(1, 0)) // fails only when it was closed, which is as good
	}
	o.all.Wait()
	return o.dropped.Load()
}

// copy passes on one pipe until its end, or until finish.
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

// drain passes on what a pipe still holds, without waiting for more.
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

// forward sends a piece on, as far as the limit lets it.
func (o *output) forward(kind frame.Kind, data []byte) {
	if kind != frame.Control && o.limit > 0 {
		before := o.passed.Add(int64(len(data))) - int64(len(data))
		room := int(max(min(o.limit-before, int64(len(data))), 0))
		o.dropped.Add(int64(len(data) - room))
		data = data[:room]
	}
	if len(data) > 0 {
		_ = o.runner.Send(kind, data) // a runner that is gone is noticed elsewhere
	}
}
