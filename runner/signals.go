package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/internal/eventlog"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/internal/telemetry"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// grace is the terminationGracePeriodSeconds of a runner pod. Active calls are cancelled reserve before
	// its end, which leaves time to report the progress.
	grace   = 30 * time.Second
	reserve = 12 * time.Second
	// pollSignals is how often the signals are looked at. The kubelet takes
	// longer to bring them.
	pollSignals = time.Second
)

// interruption handles SIGTERM in two steps: with the signal Interrupted nothing new begins; the context ends when
// active calls must be cancelled. A second SIGTERM does that immediately.
func interruption(ctx context.Context, latest *signals.Latest) (cut context.Context, release func()) {
	caught := make(chan os.Signal, 2)
	signal.Notify(caught, syscall.SIGTERM, syscall.SIGINT)
	cut, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-caught:
			latest.Update(func(s *signals.Signals) { s.Interrupted = true })
		case <-cut.Done():
			return
		}
		select {
		case <-caught:
		case <-time.After(grace - reserve):
		case <-cut.Done():
		}
		cancel(signals.ErrInterrupted)
	}()
	return cut, func() { signal.Stop(caught); cancel(nil) }
}

// untilInterrupted is a context that also ends when the pod is shut down.
func untilInterrupted(ctx context.Context, from signals.Source) (context.Context, context.CancelFunc) {
	return signals.Context(ctx, from, signals.Interrupted, signals.ErrInterrupted)
}

// A signalsReader reads the file with the operator's signals: Decisions, results of child Runs, and whether the Run is
// paused or stopped.
type signalsReader struct {
	path   string
	latest *signals.Latest
	log    *slog.Logger
	// decode decodes a file. A newer operator may write unknown fields.
	decode func([]byte, any) error
	last   string // the file as it was last read
}

// poll keeps reading the file until the context ends.
func (r *signalsReader) poll(ctx context.Context) {
	poll := time.NewTicker(pollSignals)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
			r.read()
		}
	}
}

// read reads the file if it has changed. If it cannot be read, the next call tries again.
func (r *signalsReader) read() {
	data, err := os.ReadFile(r.path)
	if err != nil || string(data) == r.last {
		return
	}
	r.last = string(data)
	r.apply(data)
}

// apply updates the signals with the content of the file. Decisions and results of child Runs stay in it until the
// operator knows that the runner acted on them.
func (r *signalsReader) apply(data []byte) {
	if len(data) == 0 {
		return
	}
	var said task.Signals
	if err := r.decode(data, &said); err != nil {
		r.log.Error("The signals cannot be read", "error", err)
		return
	}
	r.latest.Update(func(s *signals.Signals) {
		s.Stopped, s.Paused, s.Decisions, s.Children = said.Stop, said.Pause, said.Decisions, said.Children
	})
}

const (
	// lockFor is how long a runner waits for the one before it to be gone. A pod
	// that was deleted by force is no more for the cluster, while its runner has its
	// grace to end in.
	lockFor  = 2 * time.Minute
	lockPoll = 250 * time.Millisecond
)

// takeOver opens the journal, before anything else that an earlier runner may
// still use. Only in a pod is that runner about to end.
func (a *attempt) takeOver(ctx context.Context) error {
	ctx, cancel := untilInterrupted(ctx, &a.latest)
	defer cancel()
	given := time.NewTimer(lockFor)
	defer given.Stop()
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	for waited := false; ; waited = true {
		err := a.open()
		if _, isLocked := errors.AsType[*journal.LockedError](err); !isLocked || a.place != place.Pod {
			return a.journalEnd(err)
		}
		if !waited {
			a.log.Info("Waiting for the runner of an earlier attempt to end", "state", a.state)
		}
		select {
		case <-poll.C:
		case <-given.C:
			return a.journalEnd(err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (a *attempt) open() error {
	dir, err := journal.Open(journal.Options{
		Dir: a.state, RunUID: a.task.Run.UID, Attempt: a.task.Attempt, Durable: a.task.Durable,
		Now: a.now, LowSpace: func() { a.lowSpace.Store(true) }, PID: a.pid(), Continue: continued(a.task.Continue),
	})
	if err != nil {
		return err
	}
	a.journal = dir
	if a.task.Continue == nil {
		return nil
	}
	return config.TakeFiles(a.state, journal.SourceDir(a.state))
}

// continued returns the session that a Run continues, as the journal names it.
func continued(c *task.Continue) *journal.Continued {
	if c == nil {
		return nil
	}
	return &journal.Continued{Run: c.Run, RunUID: c.RunUID, Step: c.Step, Models: c.Models}
}

// pid returns the process of this attempt; 0: it is in a pod, where other pods have the same numbers.
func (a *attempt) pid() int {
	if a.place == place.Pod {
		return 0
	}
	return os.Getpid()
}

// journalEnd gives a refusal of the journal its reason, and says what to do where the attempt
// is made.
func (a *attempt) journalEnd(err error) error {
	var (
		locked     *journal.LockedError
		foreign    *journal.ForeignError
		superseded *journal.SupersededError
		full       *journal.FullError
		corrupt    *journal.CorruptError
		missing    *journal.NotContinuedError
	)
	switch {
	case errors.As(err, &missing):
		return task.End(task.ReasonNothingToContinue, "%w", err)
	case errors.As(err, &locked):
		return task.End(task.ReasonRunnerFailed, "%s (%w%s)", lockedAdvice[a.place], err, holder(locked))
	case errors.As(err, &corrupt):
		return fmt.Errorf("%w; the session cannot be resumed: %s", err, corruptAdvice[a.place])
	case errors.As(err, &foreign) && a.place == place.Program:
		return task.End(task.ReasonMisconfigured, "The directory %s has the journal of another prompt or agent. Set Agent.State to another directory", a.state)
	case errors.As(err, &superseded):
		return task.End(task.ReasonFenced, "%w", err)
	case errors.As(err, &full):
		return task.End(task.ReasonStorageFull, "%w", err)
	}
	return err
}

// holder names the process that holds a journal.
func holder(l *journal.LockedError) string {
	switch {
	case l.Own:
		return ": this process"
	case l.PID == 0:
		return ""
	case l.Host == "":
		return fmt.Sprintf(": process %d", l.PID)
	}
	return fmt.Sprintf(": process %d on host %s", l.PID, l.Host)
}

// What to do about a journal that another runner has locked, and about a damaged one.
var (
	lockedAdvice = map[place.Place]string{
		place.Pod:     "The runner of an earlier attempt does not end, and still holds the files of the Run: look at its pod and its cluster node",
		place.Local:   "Another run of this machine still uses the state directory: wait for its end, or use another directory",
		place.Program: "Another Run still uses the directory of Agent.State: wait for its end, or set Agent.State to another directory",
	}
	corruptAdvice = map[place.Place]string{
		place.Pod:     "save the files of its PersistentVolumeClaim, and create another Run",
		place.Local:   "save what you need of the state directory, and use another one",
		place.Program: "save what you need of the directory of Agent.State, and set Agent.State to another one",
	}
)

// openEvents starts the feed of events and its subscribers.
func (a *attempt) openEvents() {
	o := eventlog.Options{
		Out: a.stdout, Run: a.task.Run.Name, Attempt: a.task.Attempt,
		After: eventlog.First(a.task.Attempt, a.journal.Restarts()),
		Mode:  eventlog.Mode(a.snapshot.Agent.Events), Redact: a.redact, Now: a.now,
	}
	a.events = eventlog.New(o)
	if a.subscribe != nil {
		a.subscribe(a.events.Feed)
	}
	if o.Feed = a.events.Feed; a.task.Durable && !a.byHand && o.Mode != eventlog.None {
		var err error
		if a.stored, err = storeEvents(a.state, o); err != nil {
			a.log.Warn("The events are not stored on the volume", "error", err)
		}
	}
	a.listeners = startListeners(a.events.Feed, a.registry.Listeners())
	a.tracer = telemetry.Start(a.events.Feed, telemetry.Options{
		Task: a.task, Snapshot: a.snapshot, Redact: a.redact,
		Warn: func(err error) { a.log.Warn("Spans are dropped", "error", a.redact.String(err.Error())) },
	})
}

const (
	// heartbeatEvery is how often a runner shows that it responds.
	heartbeatEvery = 5 * time.Second
	// heartbeatMaxAge is the age of the last heartbeat from which on the liveness
	// probe fails.
	heartbeatMaxAge = 30 * time.Second
)

// A heartbeat shows the liveness probe that the runner responds. It truncates the termination message, which is empty
// until the runner ends: its modification time is the time of the last heartbeat, and the next heartbeat removes the
// message of a failed probe. The kubelet creates that file for every container, on no volume of the Run, so that a
// volume that does not respond stops no heartbeat.
type heartbeat struct {
	path string // empty: there is no probe

	mu     sync.Mutex
	checks []func()
	ended  bool
}

// watch has each heartbeat wait until check returns.
func (h *heartbeat) watch(check func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks = append(h.checks, check)
}

// run beats until the context ends.
func (h *heartbeat) run(ctx context.Context) {
	if h.path == "" {
		return
	}
	tick := time.NewTicker(heartbeatEvery)
	defer tick.Stop()
	for {
		h.beat()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (h *heartbeat) beat() {
	h.mu.Lock()
	checks := h.checks
	h.mu.Unlock()
	for _, check := range checks {
		check()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return
	}
	if f, err := os.OpenFile(h.path, os.O_WRONLY|os.O_TRUNC, 0); err == nil {
		_ = f.Close()
	}
}

// end ends the heartbeats: from now on the file is the termination message.
func (h *heartbeat) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
}

// hungTermination is the termination message of a runner that the kubelet ends. It has no usage and therefore no
// attempt, so that no meter is taken from it.
var hungTermination = task.Termination{Version: task.Version, Result: task.Result{
	Reason:  task.ReasonRunnerFailed,
	Message: "the runner did not respond for more than two minutes, and its liveness probe ended it",
}}.Encode()

// probe is the liveness probe: it returns 1 if the runner whose termination message is at path does not respond, and
// then writes the cause there, for the operator. If it cannot open the file, it returns 0, because the runner could not
// open it either.
func probe(path string, now time.Time) int {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return 0
	}
	defer f.Close()
	said, err := io.ReadAll(io.LimitReader(f, task.MaxTermination))
	if err != nil {
		return 0
	}
	if len(said) > 0 {
		if bytes.Equal(said, hungTermination) {
			return 1 // no heartbeat since the last probe
		}
		return 0 // it is ending, and bounds that itself
	}
	if info, err := f.Stat(); err != nil || now.Sub(info.ModTime()) <= heartbeatMaxAge {
		return 0
	}
	_, _ = f.Write(hungTermination)
	return 1
}
