// Package attempt makes one attempt at a Run, in a pod or in directories of this machine: Main and Run. It also has the
// other programs of a runner's pod: Fetch prepares the workspace, Probe is the liveness probe, and SendFiles reads the
// files of a Run that ended.
//
// The steps of an attempt: read the task, wait for the keys, take over the journal, work (package engine), report the
// end twice (in the termination message and in the Run's status), exit with a code of package task.
package attempt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/disk"
	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/internal/engine"
	"github.com/deckhand-dev/deckhand/runner/internal/eventlog"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/internal/telemetry"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A Registry returns what a custom runner was built of.
type Registry func() (*config.Registry, error)

// Main makes one attempt as the work of this process, which SIGTERM interrupts, and returns the exit code.
func Main(env Environment, registry Registry) int {
	a := newAttempt(env)
	ctx, release := interruption(context.Background(), &a.latest)
	defer release()
	return a.runToEnd(ctx, registry).exitCode
}

// Run makes one attempt inside of a Go program. The end of ctx interrupts it.
func Run(ctx context.Context, env Environment, registry Registry) Ending {
	a := newAttempt(env)
	cut, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() {
		a.latest.Update(func(s *signals.Signals) { s.Interrupted = true })
		cancel(signals.ErrInterrupted)
	})()
	return a.runToEnd(cut, registry)
}

func newAttempt(env Environment) *attempt {
	return &attempt{Environment: env, began: env.Now(), heartbeat: heartbeat{path: env.terminationLog}}
}

// An Ending is how an attempt ended.
type Ending struct {
	Outcome  engine.Outcome
	Result   task.Result // within the bounds of the status
	exitCode int
}

// runToEnd makes the attempt until it ends, or until ctx ends.
func (a *attempt) runToEnd(ctx context.Context, registry Registry) Ending {
	a.heartbeat.watch(func() { a.latest.Current() })
	beating, still := context.WithCancel(context.Background())
	defer still()
	go a.heartbeat.run(beating)
	if err := a.read(registry); err != nil {
		a.Log.Error("The attempt cannot begin", "error", err)
		out := engine.Outcome{Reason: task.ReasonMisconfigured, Message: err.Error()}
		result := task.Result{Reason: out.Reason, Message: out.Message}
		a.writeTermination(result, out)
		return Ending{Outcome: out, Result: result, exitCode: task.ExitBadTask}
	}
	ctx, a.end = context.WithCancelCause(ctx)
	defer a.end(nil)
	defer a.close()
	out, err := a.run(ctx)
	if err != nil {
		out = a.failed(err)
	}
	return a.finish(ctx, out)
}

// An attempt is the current attempt of this process. Fields are nil until their step is reached.
type attempt struct {
	Environment
	registry    *config.Registry
	began       time.Time
	latest      signals.Latest // what operator, approvers and kubelet say
	end         context.CancelCauseFunc
	lowSpace    atomic.Bool
	sandboxes   sandboxClients
	artifacts   *artifacts // nil: commands make no files, or they are not listed
	engineEnded bool       // the engine has returned its outcome
	announced   func()     // returns once an interruption was announced; nil: the engine was not reached

	task      task.Task
	snapshot  task.Snapshot
	redact    *redact.Redactor
	heartbeat heartbeat
	refusals  *refusals
	reporter  reporter
	journal   *journal.Dir
	disk      *disk.Disk
	skills    *disk.Disk // nil: there are none
	built     config.Built
	events    *eventlog.Writer
	stored    *storedEvents
	listeners *listeners
	tracer    *telemetry.Tracer
	mirror    *mirroredJournal
}

// read reads the task and the registry.
func (a *attempt) read(registry Registry) error {
	in, err := a.Task()
	if err != nil {
		return err
	}
	if a.task, a.snapshot, err = config.Read(in.Task, in.Snapshot); err != nil {
		return err
	}
	a.registry, err = registry()
	return err
}

// run prepares the attempt and does the work.
func (a *attempt) run(ctx context.Context) (engine.Outcome, error) {
	status, err := a.openStatus()
	if err != nil {
		return engine.Outcome{}, err
	}
	a.reporter = status
	if a.SignalsFile != "" {
		a.pollSignals(ctx)
	}
	if err := a.awaitKeys(ctx); err != nil {
		return engine.Outcome{}, err
	}
	if err := a.takeOver(ctx); err != nil {
		return engine.Outcome{}, err
	}
	a.openEvents()
	built, err := a.build(ctx)
	if err != nil {
		return engine.Outcome{}, err
	}
	if s := built.SandboxTools.Sandbox; s != nil {
		a.showConfinement(ctx, status, s.Confinement)
	}
	if a.snapshot.Sandbox != nil {
		a.artifacts = recordFiles(ctx, a.Workspace, a.State, a.Log)
	}
	a.mirror = newMirroredJournal(a.journal, built.Sessions, sessionRow(a.task, a.snapshot.Agent.Name))
	return a.runEngine(ctx, built)
}

// openStatus returns the reporter to the status of the Run.
func (a *attempt) openStatus() (*statusReporter, error) {
	to := reporter(noReporter{})
	if open := a.Environment.reporter; open != nil {
		var err error
		if to, err = open(a.Environment, a.task, a.end); err != nil {
			return nil, err
		}
	}
	a.refusals = newRefusals(a.task.Refused, func(message string, e events.HostRefused) { a.events.Emit(step.Scope{}, message, e) })
	status := &statusReporter{to: to, refusals: a.refusals}
	if a.task.Durable {
		status.leaving = a.interrupted
	}
	return status, nil
}

// pollSignals reads the signals file, and again whenever it changes.
func (a *attempt) pollSignals(ctx context.Context) {
	r := &signalsReader{path: a.SignalsFile, latest: &a.latest, log: a.Log, decode: json.Unmarshal}
	if a.ByHand {
		r.decode = config.Decode
	}
	r.read()
	go r.poll(ctx)
}

// awaitKeys waits for the keys that the Run may need, at most until the pod is shut down.
func (a *attempt) awaitKeys(ctx context.Context) error {
	ctx, cancel := untilInterrupted(ctx, &a.latest)
	defer cancel()
	since := a.Now()
	defer func() { a.began = a.began.Add(max(a.Now().Sub(since), 0)) }() // limits.duration does not count this wait
	secrets, err := config.AwaitKeys(ctx, a.Place, config.Secrets(a.snapshot), a.task.Run.Namespace, a.Key)
	a.redact = redact.New(append(secrets, a.credentials(a.snapshot.Workspace.Git)...)...)
	return err
}

// keyReader reads a key as the environment does, and adds each value to the redactor:
// a Secret may be rotated while the attempt runs.
func (a *attempt) keyReader(k task.SecretKey) func() (string, error) {
	key := a.Key(k)
	return func() (string, error) {
		value, err := key()
		if err == nil && value == "" {
			err = errors.New("it is empty")
		}
		if err == nil {
			a.redact.Add(redact.Secret{Name: k.Secret, Key: k.Key, Value: []byte(value)})
		}
		return value, err
	}
}

func (a *attempt) build(ctx context.Context) (config.Built, error) {
	d, err := disk.Open(a.Workspace)
	if err != nil {
		return config.Built{}, fmt.Errorf("opening the workspace: %w", err)
	}
	a.disk = d
	skills, err := a.openSkills()
	if err != nil {
		return config.Built{}, err
	}
	built, err := a.registry.Build(ctx, config.Parts{
		Task: a.task, Snapshot: a.snapshot, Place: a.Place, Workspace: d, Skills: skills, Missing: a.missing(a.snapshot.Workspace.Git), State: a.State, Key: a.keyReader, Redact: a.redact.String, Now: a.Now,
		CommandDir: a.CommandDir, Sandbox: a.sandboxes.ofRun(ctx, a.Environment, a.snapshot.Sandbox, a.refusals.add), Network: a.network, Server: a.sandboxes.ofServers(a.servers), Learn: a.redact.Add, Log: func(text string) { a.Log.Warn(text) },
	})
	a.built = built
	return built, err
}

// openSkills opens the directory of the skills; nil: there is none.
func (a *attempt) openSkills() (backend.Driver, error) {
	if a.Environment.skills == "" {
		return nil, nil //nolint:nilnil // agents need not have skills
	}
	var err error
	if a.skills, err = disk.Open(a.Environment.skills); err != nil {
		return nil, fmt.Errorf("opening the directory of the skills: %w", err)
	}
	return a.skills, nil
}

// runEngine runs the engine. The engine handles its own panics, and runEngine the panics of the code around it.
func (a *attempt) runEngine(ctx context.Context, built config.Built) (out engine.Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.Log.Error("The runner crashed", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("the runner crashed: %v", p)
		}
	}()
	c := built.Engine
	c.Journal, c.Events, c.Report, c.Redact = a.mirror, a.events, a.reporter, a.redact
	if a.wrapJournal != nil {
		c.Journal = a.wrapJournal(a.mirror)
	}
	c.Signals, c.CanAsk, c.CanStartRuns = &a.latest, a.Place != place.Program, !a.ByHand // by hand there is no operator
	c.Durable = c.Durable && !a.ByHand
	if a.ByHand { // no status shows that it waits
		c.Remind = time.Minute
	}
	c.LowSpace, c.Now, c.Watch = a.lowSpace.Load, a.Now, a.heartbeat.watch
	c.Began, c.Denied, c.StepBegan = a.began, a.refusals.deny, a.refusals.beginStep
	a.announce(ctx)
	out = engine.Run(ctx, c)
	a.engineEnded = true
	if out.Stack != "" {
		a.Log.Error("The runner crashed", "error", out.Message, "stack", out.Stack)
	}
	return out, nil
}

// announce begins to wait for an interruption, until a.announced ends that: run.finished closes
// the events, also if the interruption ends the attempt.
func (a *attempt) announce(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.announceInterruption(ctx)
	}()
	a.announced = func() {
		cancel()
		<-done
	}
}

// announceInterruption emits an event when the pod is about to be shut down.
func (a *attempt) announceInterruption(ctx context.Context) {
	ctx, cancel := untilInterrupted(ctx, &a.latest)
	defer cancel()
	<-ctx.Done()
	if a.interrupted() {
		a.events.Emit(step.Scope{}, "The runner is asked to end; nothing new begins", events.StateChanged{State: "Interrupted"})
	}
}

// failed returns the outcome of an attempt that ended before its work began.
func (a *attempt) failed(err error) engine.Outcome {
	out := engine.Outcome{Reason: task.ReasonRunnerFailed, Message: a.redact.String(err.Error())}
	if end, ok := errors.AsType[*task.EndError](err); ok {
		out.Reason, out.Message = end.Reason, a.redact.String(end.Message)
	}
	used := a.task.Meter
	used.DurationSeconds += int64(max(a.Now().Sub(a.began), 0) / time.Second)
	out.Progress = task.Progress{
		Version: task.Version, Attempt: a.task.Attempt,
		Counts: task.CountsOf(used), Usage: task.UsageOf(used),
	}
	if len(a.snapshot.Models) > 0 {
		out.Progress.Model = a.snapshot.Models[0].Name
	}
	return out
}

// closeBuilt closes what the factories of a custom runner made.
func (a *attempt) closeBuilt() {
	ctx, cancel := context.WithTimeout(context.Background(), releaseFor)
	defer cancel()
	if err := a.built.Close(ctx); err != nil {
		a.Log.Warn("Closing the parts of a custom runner failed", "error", a.redact.String(redact.Printable(err.Error())))
	}
}

// close releases what was opened. It ignores errors, because the attempt has ended.
func (a *attempt) close() {
	if a.events != nil {
		a.events.Close(closeFor)
		a.stored.close(closeFor)
		a.listeners.close(closeFor)
		a.tracer.Close(traceFor)
	}
	if a.mirror != nil {
		a.mirror.close(copyFor, a.Log)
	}
	a.closeBuilt()
	a.built.SandboxTools.Close()
	a.sandboxes.close()
	if a.reporter != nil {
		a.reporter.Close()
	}
	if a.journal != nil {
		_ = a.journal.Close()
	}
	for _, d := range []*disk.Disk{a.disk, a.skills} {
		if d != nil {
			_ = d.Close()
		}
	}
}
