package attempt

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// update writes what an exchange does not have yet. What it has is never changed.
var update = flag.Bool("update", false, "write the files of testdata that are missing")

// An exchange is what operator and runner wrote to each other during one Run, in one
// version of their contract. The documentation of package task says what is in it.
type exchange struct {
	t   *testing.T
	dir string
}

// eachExchange runs a test for each version of the contract.
func eachExchange(t *testing.T, test func(t *testing.T, e exchange)) {
	t.Helper()
	for version := 1; version <= task.Version; version++ {
		t.Run(fmt.Sprintf("version %d", version), func(t *testing.T) {
			test(t, exchange{t: t, dir: filepath.Join("..", "..", "task", "testdata", fmt.Sprintf("v%d", version))})
		})
	}
}

func (e exchange) path(name string) string { return filepath.Join(e.dir, name) }

// before is a file of the exchange; got is what it is if it is missing.
func (e exchange) before(name string, got []byte) any {
	e.t.Helper()
	if _, err := os.Stat(e.path(name)); *update && err != nil {
		writeFile(e.t, e.path(name), string(got))
	}
	data, err := os.ReadFile(e.path(name))
	if err != nil {
		e.t.Fatal(err)
	}
	return decoded(e.t, data)
}

func decoded(t *testing.T, data []byte) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatalf("reading %s: %v", data, err)
	}
	return value
}

// changing are the fields of what a runner writes that differ from Run to Run.
var changing = []string{"sequence", "askedAt", "expiresAt", "startedAt", "duration", "durationMs", "durationSeconds"}

// formerNumber matches the paths of the numbers of turns that runners of before reported in place of ids. An
// operator of before only stores them.
var formerNumber = regexp.MustCompile(`\.(recent\[[0-9]+\]\.step|step\.number)$`)

// missing lists where a value lacks what a value that was written before has. Fields
// may be added: an operator ignores those that it does not know.
func missing(path string, before, now any) []string {
	switch before := before.(type) {
	case map[string]any:
		now, _ := now.(map[string]any)
		var paths []string
		for name, value := range before {
			if has, ok := now[name]; !ok || !slices.Contains(changing, name) {
				paths = append(paths, missing(path+"."+name, value, has)...)
			}
		}
		return paths
	case []any:
		now, _ := now.([]any)
		if len(now) != len(before) {
			return []string{fmt.Sprintf("%s: %d elements before, %d now", path, len(before), len(now))}
		}
		var paths []string
		for i := range before {
			paths = append(paths, missing(fmt.Sprintf("%s[%d]", path, i), before[i], now[i])...)
		}
		return paths
	}
	if before != now && !formerNumber.MatchString(path) {
		return []string{fmt.Sprintf("%s: %v before, %v now", path, before, now)}
	}
	return nil
}

func (e exchange) expect(name string, got []byte) {
	e.t.Helper()
	if paths := missing(name, e.before(name, got), decoded(e.t, got)); len(paths) > 0 {
		slices.Sort(paths)
		e.t.Errorf("An operator of this version would not read what it read before:\n%s\nthis runner writes %s", strings.Join(paths, "\n"), got)
	}
}

// pod is one whose operator wrote what the exchange has.
func (e exchange) pod(attempt int) *testPod {
	e.t.Helper()
	p := newTestPod(e.t)
	p.SignalsFile = filepath.Join(e.t.TempDir(), "signals.json")
	p.Task = func() (Input, error) {
		in, err := read(e.path("task.json"), e.path("runner.json"))
		in.Task = bytes.Replace(in.Task, []byte(`"attempt":1`), fmt.Appendf(nil, `"attempt":%d`, attempt), 1)
		return in, err
	}
	return p
}

// answers is a driver whose first answers are calls of Write.
func answers(calls int) func(turn int, _ func() (string, error)) []model.Delta {
	return func(turn int, _ func() (string, error)) []model.Delta {
		if turn <= calls {
			return callsWrite()
		}
		return []model.Delta{{Text: "Done."}, {Finish: step.FinishStop, Usage: &step.Usage{InputTokens: 20, OutputTokens: 2}}}
	}
}

// The operator of a Run may be older than the runner, which the user may have built: the
// runner works by the task that it was given, asks, hears the approval, and reports.
func TestRunnerWorksForOlderOperators(t *testing.T) {
	eachExchange(t, func(t *testing.T, e exchange) {
		p := e.pod(1)
		writeFile(t, p.SignalsFile, "")
		var asks []byte
		p.api.answer = func(_ int, said task.Progress) (int, string) {
			if len(said.Pending) > 0 && asks == nil {
				asks = p.api.sent
				e.keepJournal(p.State)
				text, err := os.ReadFile(e.path("signals.json"))
				if err != nil {
					t.Error(err)
				}
				writeFile(t, p.SignalsFile, string(text))
			}
			return http.StatusOK, ""
		}
		if code := p.run(p.withDriver(answers(1))); code != task.ExitCommitted {
			t.Errorf("exit code %d: %+v", code, p.termination(t))
		}
		last, err := os.ReadFile(p.terminationLog)
		if err != nil {
			t.Fatal(err)
		}
		e.expect("asks.json", asks)
		e.expect("done.json", p.api.sent)
		e.expect("termination.json", last)
		if text, err := os.ReadFile(filepath.Join(p.Workspace, "a")); string(text) != "b" {
			t.Errorf("the file has %q, %v", text, err)
		}
	})
}

// The last attempt of a Run may have had an older runner: the next one resumes from its
// journal, is not asked again, and makes the approved call once.
func TestRunnerResumesJournalsOfOlderRunners(t *testing.T) {
	eachExchange(t, func(t *testing.T, e exchange) {
		p := e.pod(2)
		// The request has not expired.
		asked, began := time.Date(2026, 11, 22, 22, 40, 0, 0, time.UTC), time.Now()
		p.Now = func() time.Time { return asked.Add(time.Since(began)) }
		if err := os.CopyFS(p.State, os.DirFS(e.path("journal"))); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(e.path("signals.json"))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, p.SignalsFile, string(text))
		if code := p.run(p.withDriver(answers(0))); code != task.ExitCommitted {
			t.Errorf("exit code %d: %+v", code, p.termination(t))
		}
		last := p.termination(t)
		if last.Result.Text != "Done." || last.Counts != (task.Counts{Steps: 2, ModelCalls: 2, ToolCalls: 1}) {
			t.Errorf("it ends with %q and counts %+v", last.Result.Text, last.Counts)
		}
		if text, err := os.ReadFile(filepath.Join(p.Workspace, "a")); string(text) != "b" {
			t.Errorf("the file has %q, %v", text, err)
		}
	})
}

// The paths and arguments of older operators are those of this runner.
func TestRunnerFindsWhatOlderOperatorsMount(t *testing.T) {
	eachExchange(t, func(t *testing.T, e exchange) {
		data, err := os.ReadFile(e.path("container.json"))
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			Env                    []struct{ Name string }
			VolumeMounts           []struct{ MountPath string }
			LivenessProbe          struct{ Exec struct{ Command []string } }
			TerminationMessagePath string
		}
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatal(err)
		}
		var mounts, names []string
		for _, m := range c.VolumeMounts {
			mounts = append(mounts, m.MountPath)
		}
		for _, v := range c.Env {
			names = append(names, v.Name)
		}
		for _, path := range []string{filepath.Dir(task.TaskFile), filepath.Dir(task.SnapshotFile), filepath.Dir(task.SignalsFile), task.TokenDir, task.StateDir, task.Workspace} {
			if !slices.Contains(mounts, path) {
				t.Errorf("nothing is mounted at %s, only at %v", path, mounts)
			}
		}
		if !slices.Contains(names, task.EnvPodUID) || c.TerminationMessagePath != task.TerminationLog {
			t.Errorf("environment %v, termination message at %s", names, c.TerminationMessagePath)
		}
		if probe := c.LivenessProbe.Exec.Command; probe[len(probe)-1] != task.LivenessMode {
			t.Errorf("the liveness probe is %v", probe)
		}
	})
}

// keepJournal adds the journal of an attempt that asks to an exchange that has none.
func (e exchange) keepJournal(state string) {
	e.t.Helper()
	if _, err := os.Stat(e.path("journal")); !*update || err == nil {
		return
	}
	err := filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Size() == 0 || info.Size() > 1<<20 { // the lock, and the reserved space
			return err
		}
		name, err := filepath.Rel(state, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		writeFile(e.t, filepath.Join(e.path("journal"), name), string(data))
		return err
	})
	if err != nil {
		e.t.Error(err)
	}
}
