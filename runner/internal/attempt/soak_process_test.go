package attempt

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/report"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// soakProcessEnv is set for a runner of the soak: this test once more, as one attempt.
const soakProcessEnv = "DECKHAND_TEST_SOAK_RUNNER"

func TestMain(m *testing.M) {
	if config := os.Getenv(soakProcessEnv); config != "" {
		os.Exit(runSoakProcess(config))
	}
	os.Exit(m.Run())
}

// A soakProcess is what one runner of the soak is given.
type soakProcess struct {
	Dir      string // of the Run: task, snapshot, state, workspace and termination messages
	Attempt  int
	PodUID   string
	API      string // URL of the API server
	Effects  string // URL of the server of effects
	Kill     recordKill
	Forgets  bool // the journal loses each intent
	TaskJSON json.RawMessage
}

// A recordKill is at which record of an attempt the runner is killed.
type recordKill struct {
	Record int // counted from 1; 0: at none
	Moment moment
	Tear   int // of a half-written record, how much of it is lost, in percent
}

// A moment is when something is killed: before, while or after a record is written or a
// request is answered.
type moment string

const (
	before moment = "before"
	during moment = "during"
	after  moment = "after"
)

func terminationOf(dir string, attempt int) string {
	return filepath.Join(dir, fmt.Sprintf("termination-%d", attempt))
}

// runSoakProcess makes one attempt with the environment of a pod, in the directories of a Run.
func runSoakProcess(config string) int {
	var p soakProcess
	if err := json.Unmarshal([]byte(config), &p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return task.ExitBadTask
	}
	return Main(Environment{
		Task: func() (Input, error) {
			snapshot, err := os.ReadFile(filepath.Join(p.Dir, "snapshot.json"))
			return Input{Task: p.TaskJSON, Snapshot: snapshot}, err
		},
		Key:            func(task.SecretKey) func() (string, error) { return func() (string, error) { return secret, nil } },
		State:          filepath.Join(p.Dir, "state"),
		Workspace:      filepath.Join(p.Dir, "workspace"),
		terminationLog: terminationOf(p.Dir, p.Attempt),
		Stdout:         io.Discard,
		Log:            slog.New(slog.DiscardHandler),
		Now:            time.Now,
		reporter: func(env Environment, tk task.Task, ended func(error)) (reporter, error) {
			return report.New(report.Options{
				Target: report.Target{
					URL: p.API, Run: tk.Run, PodUID: p.PodUID, Client: &http.Client{Transport: &http.Transport{}},
					Token: func() (string, error) { return "token", nil },
				},
				Now: env.Now, Ended: ended, Log: env.Log, Jitter: func(d time.Duration) time.Duration { return d },
			}), nil
		},
		wrapJournal: func(log journal.Log) journal.Log { return &killingJournal{Log: log, process: p} },
	}, registryOf(soakTools(p.Effects)))
}

// A killingJournal kills its process at a record.
type killingJournal struct {
	journal.Log
	process soakProcess
	mu      sync.Mutex // one record at a time, so that the last one can be torn
	records int
}

// Append implements [journal.Log].
func (k *killingJournal) Append(r journal.Record) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.records++
	kill := k.process.Kill
	isDue := k.records == kill.Record
	if isDue && kill.Moment == before {
		killSelf()
	}
	if k.process.Forgets && r.Kind == journal.KindIntent && r.Intent.CallID != "" {
		if isDue {
			killSelf()
		}
		return nil
	}
	start := k.size()
	err := k.Log.Append(r)
	if !isDue {
		return err
	}
	if kill.Moment == during {
		end := k.size()
		lost := max((end-start)*int64(kill.Tear)/100, 1)
		err = errors.Join(err, os.Truncate(k.file(), end-lost))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err) // the soak sees a runner that was not killed
		return err
	}
	killSelf()
	return nil
}

func (k *killingJournal) file() string {
	return filepath.Join(k.process.Dir, "state", fmt.Sprintf("journal-%04d.jsonl", k.process.Attempt))
}

func (k *killingJournal) size() int64 {
	info, err := os.Stat(k.file())
	if err != nil {
		return 0
	}
	return info.Size()
}

// killSelf ends the process as the kernel does when memory is short: nothing runs any more.
func killSelf() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
