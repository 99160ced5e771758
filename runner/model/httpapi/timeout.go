package httpapi

import (
	"context"
	"fmt"
	"io"
	"time"
)

// maxAnswer bounds the bytes of one answer.
const maxAnswer = 32 << 20

// idleTimer ends the call when a wait lasts too long.
type idleTimer struct {
	idle  time.Duration
	timer *time.Timer
}

// startIdleTimer starts a timer that runs at once.
func startIdleTimer(idle time.Duration, cancel context.CancelCauseFunc) *idleTimer {
	return &idleTimer{
		idle:  idle,
		timer: time.AfterFunc(idle, func() { cancel(fmt.Errorf("not a byte came for %s", idle)) }),
	}
}

func (t *idleTimer) start() { t.timer.Reset(t.idle) }
func (t *idleTimer) stop()  { t.timer.Stop() }

// idleTimeoutBody bounds the silence and the size of an answer. Only the time
// inside Read counts: the reader may take any time between two reads.
type idleTimeoutBody struct {
	in      io.ReadCloser
	timer   *idleTimer
	left    int64
	tooLong error
}

func (b *idleTimeoutBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.tooLong
	}
	b.timer.start()
	n, err := b.in.Read(p[:min(int64(len(p)), b.left)])
	b.timer.stop()
	b.left -= int64(n)
	return n, err
}

func (b *idleTimeoutBody) Close() error { return b.in.Close() }
