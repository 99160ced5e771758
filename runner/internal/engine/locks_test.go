package engine

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/meter"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// What watches a Run waits for each lock that is held for a moment only, and for
// none that is held while the journal is written.
func TestRespondsWaitsForItsLocks(t *testing.T) {
	var responds func()
	s := newTestRun(nil, says("ok"))
	s.Watch = func(f func()) { responds = f }
	s.run(t)
	if responds == nil {
		t.Fatal("nothing is given to watch")
	}
	r := newRun(Config{Now: time.Now})
	defer r.endLifetime()
	r.meter = meter.New(r.clock, task.Limits{}, step.Meter{})
	var counting sync.Mutex // stands for the lock of the meter, which is held while something is counted
	for name, lock := range map[string]*sync.Mutex{"status": &r.status.mu, "meter": &counting} {
		lock.Lock()
		counts := make(chan struct{})
		if lock == &counting {
			go r.meter.Add(func(*step.Meter) {
				close(counts)
				counting.Lock()
				defer counting.Unlock()
			})
			<-counts
		}
		var free atomic.Bool
		returned := make(chan bool)
		go func() {
			r.awaitLocks()
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
}

// While something is recorded the disk may hang, and the runner responds all the
// same.
func TestTheRunnerRespondsWhileItRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSignals()
		s := governedRun(c, calls("Bash {}"), says("ok"))
		log := &respondingLog{Memory: s.journal, responds: func() {}}
		s.Journal = log
		s.Watch = func(responds func()) { log.responds = responds }
		end := s.running(t.Context())
		synctest.Wait()
		c.say(approve("d", s.reporter.last().Pending[0].ID, ""))
		if out := end(); out.Reason != task.ReasonFinished || log.decisions != 1 {
			t.Errorf("ended %s with %d decisions: %s", out.Reason, log.decisions, out.Message)
		}
	})
}

// A respondingLog looks whether the runner responds while it appends.
type respondingLog struct {
	*journal.Memory
	responds  func()
	decisions int
}

func (l *respondingLog) Append(rec journal.Record) error {
	l.responds()
	if rec.Decision != nil {
		l.decisions++
	}
	return l.Memory.Append(rec)
}
