package meter

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Whoever watches that the runner responds reads the meter for it.
func TestReadWaitsForTheLocks(t *testing.T) {
	a := New(NewClock(time.Now, time.Time{}), task.Limits{}, step.Meter{})
	for name, lock := range map[string]*sync.Mutex{"accounts": a.mu, "clock": &a.clock.mu} {
		lock.Lock()
		var free atomic.Bool
		returned := make(chan bool)
		go func() {
			a.Read()
			returned <- free.Load()
		}()
		for range 100 {
			runtime.Gosched()
		}
		free.Store(true)
		lock.Unlock()
		if !<-returned {
			t.Errorf("it does not wait for the lock of the %s", name)
		}
	}
}
