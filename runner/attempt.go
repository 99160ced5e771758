package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/disk"
	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/internal/engine"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// attempt makes one attempt at a place and returns the exit code.
func attempt(p place, options []Option) int {
	w := &work{place: p, began: p.now(), heartbeat: heartbeat{path: p.last}}
	ctx, release := interruption(context.Background(), &w.told)
	defer release()
	w.heartbeat.watch(func() { w.told.Current() })
	beating, still := context.WithCancel(context.Background())
	defer still()
	go w.heartbeat.run(beating)
	if err := w.read(options); err != nil {
		p.log.Error("The attempt cannot begin", "error", err)
		w.leave(task.Result{Reason: task.ReasonMisconfigured, Message: err.Error()}, engine.Outcome{})
		return task.ExitBadTask
	}
	ctx, w.end = context.WithCancelCause(ctx)
	defer w.end(nil)
	defer w.close()
	out, err := w.run(ctx)
	if err != nil {
		out = w.failed(err)
	}
	return w.finish(ctx, out)
}

// A work is one attempt under way. What is nil was not reached.
type work struct {
	place
	registry *config.Registry
	began    time.Time
	told     signals.Latest // what operator, approvers and kubelet said
	end      context.CancelCauseFunc
	lowSpace atomic.Bool
	boxes    boxes
	made     *artifacts // nil: commands make no files, or they are not listed
	engaged  bool       // the engine has told how its work ended

	task      task.Task
	snapshot  task.Snapshot
	redact    *redact.Redactor
	heartbeat heartbeat
	reporter  reporter
	journal   *journal.Dir
	disk      *disk.Disk
	built     config.Built
	events    *events.Writer
	audience  *audience
	copies    *copies
}

// read reads the task, and what the runner was built with.
func (w *work) read(options []Option) error {
	in, err := w.place.task()
	if err != nil {
		return err
	}
	if w.task, w.snapshot, err = config.Read(in.task, in.snapshot); err != nil {
		return err
	}
	w.registry, err = newRegistry(options)
	return err
}

// run prepares the attempt and does the work.
func (w *work) run(ctx context.Context) (engine.Outcome, error) {
	status, err := w.openStatus()
	if err != nil {
		return engine.Outcome{}, err
	}
	w.reporter = status
	if w.signals != "" {
		w.pollSignals(ctx)
	}
	if err := w.awaitKeys(ctx); err != nil {
		return engine.Outcome{}, err
	}
	if err := w.takeOver(ctx); err != nil {
		return engine.Outcome{}, err
	}
	w.tell()
	built, err := w.build(ctx)
	if err != nil {
		return engine.Outcome{}, err
	}
	if s := built.SandboxTools.Sandbox; s != nil {
		c := s.Confinement
		status.showConfinement(&task.Confinement{Process: c.Process, Files: c.Files, Network: c.Network, LandlockABI: c.LandlockABI})
	}
	if w.snapshot.Sandbox != nil {
		w.made = recordFiles(ctx, w.workspace, w.state, w.log)
	}
	w.copies = copying(w.journal, built.Sessions, sessionRow(w.task, w.snapshot.Agent.Name))
	return w.engage(ctx, built)
}

// openStatus returns what reports to the status of the Run.
func (w *work) openStatus() (*statusReporter, error) {
	to, err := w.place.reporter(w.place, w.task, w.end)
	if err != nil {
		return nil, err
	}
	status := &statusReporter{to: to}
	if w.task.Durable {
		status.leaving = w.interrupted
	}
	return status, nil
}

// pollSignals reads the signals file, and again whenever it changes.
func (w *work) pollSignals(ctx context.Context) {
	r := &signalsReader{path: w.signals, latest: &w.told, log: w.log, decode: json.Unmarshal}
	if w.byHand {
		r.decode = config.Decode
	}
	r.read()
	go r.poll(ctx)
}

// awaitKeys waits for the keys of everything that the Run may reach, though
// not for longer than the pod.
func (w *work) awaitKeys(ctx context.Context) error {
	ctx, cancel := untilInterrupted(ctx, &w.told)
	defer cancel()
	since := w.now()
	defer func() { w.began = w.began.Add(max(w.now().Sub(since), 0)) }() // limits.duration does not count this wait
	secrets, err := config.AwaitKeys(ctx, config.Secrets(w.snapshot), w.task.Run.Namespace, w.key)
	w.redact = redact.New(append(secrets, w.credentials()...)...)
	return err
}

// learning reads a key as the place does, and has the redactor know each value:
// a Secret may be rotated while the attempt runs.
func (w *work) learning(k task.SecretKey) func() (string, error) {
	key := w.key(k)
	return func() (string, error) {
		value, err := key()
		if err == nil && value == "" {
			err = errors.New("it is empty")
		}
		if err == nil {
			w.redact.Add(redact.Secret{Name: k.Secret, Key: k.Key, Value: []byte(value)})
		}
		return value, err
	}
}

func (w *work) build(ctx context.Context) (config.Built, error) {
	d, err := disk.Open(w.workspace, w.now)
	if err != nil {
		return config.Built{}, fmt.Errorf("opening the workspace: %w", err)
	}
	w.disk = d
	built, err := w.registry.Build(ctx, config.Parts{
		Task: w.task, Snapshot: w.snapshot, Workspace: d, State: w.state, Key: w.learning, Redact: w.redact.String, Now: w.now,
		Sandbox: w.box(ctx), Server: w.server(), Learn: w.redact.Add, Log: func(text string) { w.log.Warn(text) },
	})
	w.built = built
	return built, err
}

// engage lets the engine work. It survives a crash of its own; what crashes
// around it ends here.
func (w *work) engage(ctx context.Context, built config.Built) (out engine.Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			w.log.Error("The runner crashed", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("the runner crashed: %v", p)
		}
	}()
	c := built.Engine
	c.Journal, c.Events, c.Report, c.Redact = w.copies, w.events, w.reporter, w.redact
	c.Signals, c.CanAsk, c.CanStartRuns = &w.told, true, !w.byHand // by hand there is no operator
	c.Durable = c.Durable && !w.byHand
	c.LowSpace, c.Now, c.Watch = w.lowSpace.Load, w.now, w.heartbeat.watch
	c.Began = w.began
	go w.announce(ctx)
	out = engine.Run(ctx, c)
	w.engaged = true
	if out.Stack != "" {
		w.log.Error("The runner crashed", "error", out.Message, "stack", out.Stack)
	}
	return out, nil
}

// announce tells those who follow that the work is about to be interrupted.
func (w *work) announce(ctx context.Context) {
	ctx, cancel := untilInterrupted(ctx, &w.told)
	defer cancel()
	<-ctx.Done()
	if w.interrupted() {
		w.events.Emit(step.Scope{}, "The pod is shut down; nothing new begins", events.StateChanged{State: "Interrupted"})
	}
}

// failed is the outcome of an attempt that did not get to its work.
func (w *work) failed(err error) engine.Outcome {
	out := engine.Outcome{Reason: task.ReasonRunnerFailed, Message: w.redact.String(err.Error())}
	if end, ok := errors.AsType[*task.EndError](err); ok {
		out.Reason, out.Message = end.Reason, w.redact.String(end.Message)
	}
	used := w.task.Meter
	used.DurationSeconds += int64(max(w.now().Sub(w.began), 0) / time.Second)
	out.Progress = task.Progress{
		Version: task.Version, Attempt: w.task.Attempt,
		Counts: task.CountsOf(used), Usage: task.UsageOf(used),
	}
	if len(w.snapshot.Models) > 0 {
		out.Progress.Model = w.snapshot.Models[0].Name
	}
	return out
}

// closeBuilt closes what the factories of a custom runner made.
func (w *work) closeBuilt() {
	ctx, cancel := context.WithTimeout(context.Background(), releaseFor)
	defer cancel()
	if err := w.built.Close(ctx); err != nil {
		w.log.Warn("Closing the parts of a custom runner failed", "error", w.redact.String(redact.Printable(err.Error())))
	}
}

// close gives back what was opened. Errors of closing are no news at the end.
func (w *work) close() {
	if w.events != nil {
		w.events.Close(closeFor)
		w.audience.close(closeFor)
	}
	if w.copies != nil {
		w.copies.close(copyFor, w.log)
	}
	w.closeBuilt()
	w.built.SandboxTools.Close()
	w.boxes.close()
	if w.reporter != nil {
		w.reporter.Close()
	}
	if w.journal != nil {
		_ = w.journal.Close()
	}
	if w.disk != nil {
		_ = w.disk.Close()
	}
}
