package httpapi

import (
	"context"
	"fmt"
	"io"
	"time"
)

// maxAnswer bounds the bytes of one answer.
const maxAnswer = 32 << 20

// patience hangs up when a wait lasts too long.
type patience struct {
	idle  time.Duration
	timer *time.Timer
}

// newPatience starts to wait.
func newPatience(idle time.Duration, hangUp context.CancelCauseFunc) *patience {
	return &patience{
		idle:  idle,
		timer: time.AfterFunc(idle, func() { hangUp(fmt.Errorf("not a byte came for %s", idle)) }),
	}
}

func (p *patience) start() { p.timer.Reset(p.idle) }
func (p *patience) stop()  { p.timer.Stop() }

// A patientBody is an answer whose silence and size are bounded. Only the time
// inside Read counts: the reader may take as long as it likes between two.
type patientBody struct {
	in       io.ReadCloser
	patience *patience
	left     int64
	tooLong  error
}

func (b *patientBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.tooLong
	}
	b.patience.start()
	n, err := b.in.Read(p[:min(int64(len(p)), b.left)])
	b.patience.stop()
	b.left -= int64(n)
	return n, err
}

func (b *patientBody) Close() error { return b.in.Close() }
