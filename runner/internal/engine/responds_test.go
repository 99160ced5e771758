package engine

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/state"
)

// What watches a Run waits for each lock that is held for a moment only, and for
// none that is held while the journal is written.
func TestRespondsWaitsForItsLocks(t *testing.T) {
	var responds func()
	s := newStage(nil, says("ok"))
	s.Watch = func(f func()) { responds = f }
	s.run(t)
	if responds == nil {
		t.Fatal("nothing is given to watch")
	}
	r := newRun(Config{Now: time.Now})
	defer r.die()
	r.meter = newMeter(r.Config, r.crew.clock, &state.Run{})
	for name, lock := range map[string]*sync.Mutex{"board": &r.board.mu, "crew": &r.crew.mu, "meter": &r.meter.mu, "clock": &r.crew.clock.mu} {
		lock.Lock()
		var free atomic.Bool
		returned := make(chan bool)
		go func() {
			r.responds()
			returned <- free.Load()
		}()
		for range 100 {
			runtime.Gosched()
		}
		free.Store(true)
		lock.Unlock()
		if !<-returned {
			t.Errorf("it does not wait for the %s", name)
		}
	}
	r.state.View(func(*state.Run) {
		r.room.mu.Lock()
		r.responds()
	})
}
