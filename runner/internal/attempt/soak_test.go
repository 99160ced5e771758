package attempt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/test/soak"
)

const (
	// soakKills is how much is killed without SOAK_KILLS.
	soakKills = 150
	// soakDeadline is limits.duration of each Run.
	soakDeadline = 5 * time.Minute
	// lateKubelet is how long a runner lives on whose pod was deleted by force, before SIGTERM.
	lateKubelet = time.Second
	// soakParallel is how many Runs are played at once: many of them wait to ask again.
	soakParallel = 8
)

// A Run whose runner, pod, model server and API server are killed at random moments ends as if
// nothing had been killed.
func TestSoakRunner(t *testing.T) {
	playSoak(t, soak.Start(t, "runner", soakKills), func(*soakRun) {})
}

// The soak is no proof unless it fails when the runner has the fault that it looks for.
func TestSoakNoticesARunnerThatForgetsIntents(t *testing.T) {
	s := soak.New("runner that forgets", 1, 60)
	playSoak(t, s, func(r *soakRun) { r.forgets = true })
	tally := s.Tally()
	isTwice := func(v soak.Violation) bool {
		return v.Invariant == soak.NothingRepeated && strings.Contains(v.Text, " happened 2 times ")
	}
	if !slices.ContainsFunc(tally.Violations, isTwice) {
		t.Errorf("it has not noticed that effects happen twice: %+v", tally)
	}
}

// playSoak plays Runs until enough was killed.
func playSoak(t *testing.T, s *soak.Soak, change func(*soakRun)) {
	t.Helper()
	var workers sync.WaitGroup
	for range soakParallel {
		workers.Go(func() {
			for {
				n, dice, more := s.Next()
				if !more {
					return
				}
				r := newSoakRun(s, n, dice)
				change(r)
				if err := r.play(t); err != nil {
					t.Errorf("Run %d: %v", n, err)
				}
			}
		})
	}
	workers.Wait()
}

// A soakRun is one Run under kills.
type soakRun struct {
	soak    *soak.Soak
	number  int
	dice    *rand.Rand
	kills   atomic.Int64 // how many are left
	forgets bool
	dir     string

	turns, helper []modeltest.Turn
	once, again   []string // the ids of effects that must not, and that may be repeated
	task          task.Task

	gate               *gate
	model              *modeltest.Server
	effects            *effects
	api                *soakAPI
	apiURL, outsideURL string
	records            map[string]string // the whole lines of each file of the journal, after the last kill
}

func newSoakRun(s *soak.Soak, n int, dice *rand.Rand) *soakRun {
	r := &soakRun{
		soak: s, number: n, dice: dice, records: map[string]string{},
		gate: &gate{refused: map[string]int{}}, effects: &effects{counts: map[string]int{}, keys: map[string]string{}},
	}
	r.api = &soakAPI{violated: r.violated}
	r.kills.Store(int64(3 + dice.IntN(14)))
	r.write()
	return r
}

func (r *soakRun) violated(i soak.Invariant, format string, args ...any) {
	r.soak.Violated(r.number, i, format, args...)
}

// write writes the dialogue of the Run's model, and of an agent that it calls.
func (r *soakRun) write() {
	for turn := range 3 + r.dice.IntN(5) {
		var next modeltest.Turn
		for call := range 1 + r.dice.IntN(3) {
			next.Calls = append(next.Calls, r.call(fmt.Sprintf("t%dc%d", turn, call)))
		}
		if r.dice.IntN(3) == 0 {
			next.Text = fmt.Sprintf("This is turn %d, in which I say more than a word.", turn)
		}
		r.turns = append(r.turns, next)
	}
	r.turns = append(r.turns, modeltest.Turn{Text: r.answer()})
	r.helper = []modeltest.Turn{
		soakCall("outside_POST", "{{.LastUserMessage}}-a"), soakCall("outside_POST", "{{.LastUserMessage}}-b"), {Text: "I helped."},
	}
}

func (r *soakRun) answer() string { return fmt.Sprintf("Run %d is done.", r.number) }

// call is a random tool call with a name of its own.
func (r *soakRun) call(id string) modeltest.Call {
	switch r.dice.IntN(8) {
	case 0:
		r.again = append(r.again, id)
		return soakCall("outside_PUT", id).Calls[0]
	case 1:
		return soakCall("outside_GET", id).Calls[0]
	case 2:
		return modeltest.Call{Name: "Write", Args: fmt.Appendf(nil, `{"path":"%s.txt","content":"%s\n"}`, id, id)}
	case 3:
		r.once = append(r.once, id+"-a", id+"-b")
		return modeltest.Call{Name: "helper", Args: fmt.Appendf(nil, `{"prompt":%q}`, id)}
	}
	r.once = append(r.once, id)
	return soakCall("outside_POST", id).Calls[0]
}

func soakCall(name, id string) modeltest.Turn {
	return modeltest.Turn{Calls: []modeltest.Call{{Name: name, Args: fmt.Appendf(nil, `{"id":%q}`, id)}}}
}

// play has the Run work until it ends, and checks the invariants.
func (r *soakRun) play(t *testing.T) error {
	dir, err := os.MkdirTemp(t.TempDir(), "run") //nolint:usetesting // a thousand Runs do not fit the disk: each goes when it has ended
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r.dir = dir
	r.model = modeltest.NewServer(modeltest.Script{Key: secret, Models: map[string]modeltest.Dialogue{"boss": {Turns: r.turns}, "helper": {Turns: r.helper}}})
	models := httptest.NewServer(r.gate.before(modelServer, r.model))
	defer models.Close()
	outside := httptest.NewServer(r.gate.before(effectServer, r.effects))
	defer outside.Close()
	api := httptest.NewServer(r.gate.before(apiServer, r.api))
	defer api.Close()
	r.apiURL, r.outsideURL = api.URL, outside.URL
	if err := r.prepare(models.URL); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), soakDeadline)
	defer cancel()
	if err := r.attempts(ctx); err != nil {
		return err
	}
	return r.check()
}

// prepare writes the task and the snapshot.
func (r *soakRun) prepare(models string) error {
	model := func(name string) task.Model {
		return task.Model{Name: name, Provider: "OpenAICompatible", Model: name, Endpoint: models + "/v1", SecretKey: task.SecretKey{Secret: "keys", Key: "api-key"}}
	}
	parallel := 1 + 3*r.dice.IntN(2)
	snapshot, err := json.Marshal(task.Snapshot{
		Version: task.Version,
		Agent: task.Agent{
			Name: "boss", Instructions: "Work.", Models: []string{"boss"}, ParallelTools: parallel, Events: "Full",
			Tools: []task.Tool{{Builtin: "Files"}, {Custom: "outside"}, {Agent: "helper"}},
		},
		Agents: []task.Agent{{Name: "helper", Instructions: "Help.", Models: []string{"helper"}, ParallelTools: 1, Events: "Full", Tools: []task.Tool{{Custom: "outside"}}}},
		Models: []task.Model{model("boss"), model("helper")},
	})
	if err != nil {
		return err
	}
	r.task = task.Task{
		Version: task.Version, Prompt: "Do it.", Durable: true, SnapshotHash: task.Hash(snapshot),
		Run:    task.Run{Namespace: "soak", Name: fmt.Sprintf("run-%d", r.number), UID: fmt.Sprintf("uid-%d", r.number)},
		Limits: task.Limits{Steps: 100, DurationSeconds: int64(soakDeadline / time.Second), Depth: 2},
	}
	return errors.Join(
		os.WriteFile(filepath.Join(r.dir, "snapshot.json"), snapshot, 0o600),
		os.Mkdir(filepath.Join(r.dir, "workspace"), 0o700), os.Mkdir(filepath.Join(r.dir, "tmp"), 0o700),
	)
}

// attempts makes attempts until the Run has ended, as the operator does.
func (r *soakRun) attempts(ctx context.Context) error {
	var earlier *soakRunner // its pod is deleted and it works on
	most := int(r.kills.Load()) + 2
	for attempt := 1; ; attempt++ {
		uid := r.api.begin(attempt)
		if uid == "" {
			earlier.await()
			return r.keepRecords()
		}
		p, err := r.start(ctx, attempt, uid)
		if err != nil {
			return err
		}
		earlier.await()
		r.gate.arm(p.plan.request)
		var ended bool
		if ended, err = r.follow(ctx, p, attempt); err != nil || ended {
			return err
		}
		if earlier = nil; p.isReplaced.Load() {
			earlier = p
		}
		if attempt == most {
			r.violated(soak.Deadline, "after %d attempts it has not ended", attempt)
			return nil
		}
	}
}

// follow waits until an attempt ends, or its pod is deleted. It reports whether the Run has
// ended.
func (r *soakRun) follow(ctx context.Context, p *soakRunner, attempt int) (ended bool, err error) {
	select {
	case <-p.replaced:
		return false, nil
	case <-p.exited:
	case <-ctx.Done():
		p.kill()
		r.violated(soak.Deadline, "attempt %d does not end before the deadline", attempt)
		return true, nil
	}
	if p.isKilledAtRecord() {
		r.killed("runner at a record")
	}
	if err := r.keepRecords(); err != nil {
		return false, err
	}
	return r.api.settle(r.termination(attempt)), nil
}

func (r *soakRun) killed(what string) {
	r.kills.Add(-1)
	r.soak.Killed(what)
}

// termination is the termination message of an attempt; nil: it has none.
func (r *soakRun) termination(attempt int) *task.Termination {
	data, err := os.ReadFile(terminationOf(r.dir, attempt))
	var t task.Termination
	if err != nil || json.Unmarshal(data, &t) != nil {
		return nil
	}
	return &t
}

// keepRecords reads which records are committed. Those that were before must still be.
func (r *soakRun) keepRecords() error {
	files, err := filepath.Glob(filepath.Join(r.dir, "state", "journal-*.jsonl"))
	if err != nil {
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		whole := string(data[:bytes.LastIndexByte(data, '\n')+1])
		if was := r.records[file]; len(whole) < len(was) || whole[:len(was)] != was {
			r.violated(soak.NothingRepeated, "%s lost records", filepath.Base(file))
		}
		r.records[file] = whole
	}
	return nil
}

// A soakRunner is the process of one attempt.
type soakRunner struct {
	cmd        *exec.Cmd
	exited     chan struct{}
	replaced   chan struct{} // closed when the pod is deleted while the runner lives
	isReplaced atomic.Bool
	plan       killPlan
}

// start starts an attempt.
func (r *soakRun) start(ctx context.Context, attempt int, podUID string) (*soakRunner, error) {
	if err := os.WriteFile(terminationOf(r.dir, attempt), nil, 0o600); err != nil {
		return nil, err
	}
	p := &soakRunner{exited: make(chan struct{}), replaced: make(chan struct{})}
	if r.kills.Load() > 0 {
		p.plan = r.plan(p)
	}
	config := soakProcess{Dir: r.dir, Attempt: attempt, API: r.apiURL, Effects: r.outsideURL, Forgets: r.forgets, PodUID: podUID, Kill: p.plan.record}
	var err error
	if config.TaskJSON, err = json.Marshal(r.taskOf(attempt)); err != nil {
		return nil, err
	}
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.CommandContext(ctx, os.Args[0])
	p.cmd.Env = append(os.Environ(), soakProcessEnv+"="+string(text), "TMPDIR="+filepath.Join(r.dir, "tmp"))
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // the status says how it ended
		close(p.exited)
	}()
	return p, nil
}

// taskOf is the task of an attempt, with what the Run has used as far as it was reported.
func (r *soakRun) taskOf(attempt int) task.Task {
	t := r.task
	t.Attempt = attempt
	r.api.mu.Lock()
	defer r.api.mu.Unlock()
	t.Meter = step.Meter{Steps: r.api.last.Counts.Steps, ModelCalls: r.api.last.Counts.ModelCalls, ToolCalls: r.api.last.Counts.ToolCalls, DurationSeconds: r.api.last.Usage.DurationSeconds}
	if attempt > 1 && r.dice.IntN(2) == 0 {
		t.Retry = "RunnerFailed: the container exited with code 137"
	}
	return t
}

// A killPlan is what is killed in one attempt: its runner at a record, or anything at a request.
type killPlan struct {
	record  recordKill
	request *requestKill
}

// plan decides what is killed in an attempt.
func (r *soakRun) plan(p *soakRunner) killPlan {
	moments := []moment{before, during, after}
	if r.dice.IntN(10) < 6 {
		return killPlan{record: recordKill{Record: 1 + r.dice.IntN(12), Moment: moments[r.dice.IntN(3)], Tear: 1 + r.dice.IntN(99)}}
	}
	servers := []string{modelServer, modelServer, effectServer, effectServer, apiServer, apiServer}
	k := &requestKill{Server: servers[r.dice.IntN(len(servers))], Request: 1 + r.dice.IntN(3), Moment: moments[r.dice.IntN(3)]}
	switch kind := r.dice.IntN(8); {
	case kind == 0:
		k.Spares, k.fire = true, func() { r.terminate(p) }
	case kind == 1:
		k.Spares, k.fire = true, func() { r.replace(p) }
	case kind < 5 && k.Server != effectServer:
		k.Refuse, k.fire = r.dice.IntN(3), func() { r.killed(k.Server) }
	default:
		k.fire = func() { r.killed("runner at a request"); p.kill() }
	}
	return killPlan{request: k}
}

// terminate deletes the pod with a grace period.
func (r *soakRun) terminate(p *soakRunner) {
	r.killed("pod, with a grace period")
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
}

// replace deletes the pod by force, so that the next attempt begins while the runner lives. The
// kubelet ends the runner a little later.
func (r *soakRun) replace(p *soakRunner) {
	r.killed("pod, by force")
	p.isReplaced.Store(true)
	close(p.replaced)
	time.AfterFunc(lateKubelet, func() { _ = p.cmd.Process.Signal(syscall.SIGTERM) })
	time.AfterFunc(lateKubelet+grace, func() { _ = p.cmd.Process.Kill() })
}

// kill kills the runner and waits until it is gone.
func (p *soakRunner) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// await waits until the runner has ended; nil has.
func (p *soakRunner) await() {
	if p != nil {
		<-p.exited
	}
}

func (p *soakRunner) isKilledAtRecord() bool {
	status, is := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return p.plan.record.Record > 0 && is && status.Signaled() && status.Signal() == syscall.SIGKILL
}
