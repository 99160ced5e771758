package programtest_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// An apiServer takes what runners report.
type apiServer struct {
	*httptest.Server

	mu   sync.Mutex
	last task.Progress
}

func newAPIServer(t testing.TB) *apiServer {
	t.Helper()
	a := &apiServer{}
	a.Server = httptest.NewTLSServer(http.HandlerFunc(a.patch))
	t.Cleanup(a.Close)
	return a
}

func (a *apiServer) patch(w http.ResponseWriter, r *http.Request) {
	var ops []struct {
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	body, err := io.ReadAll(r.Body)
	if err := errors.Join(err, json.Unmarshal(body, &ops)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	op := ops[len(ops)-1]
	if op.Path == "/metadata/resourceVersion" { // by which a runner asks whether its pod is recorded
		http.Error(w, "the object has been modified", http.StatusConflict)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = task.Progress{}
	if err := json.Unmarshal(op.Value, &a.last); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = io.WriteString(w, "{}")
}

// A pod is the files of a runner pod below a directory, which is the root of its containers.
type pod struct {
	root  string
	uid   string
	api   *apiServer
	model *modeltest.Server
	log   bytes.Buffer
}

// newPod lays out the pod of a Run with a scripted model. hangs, if not nil, is called with the number of each request.
func newPod(t testing.TB, tk task.Task, hangs func(request int), turns ...modeltest.Turn) *pod {
	t.Helper()
	p := &pod{root: t.TempDir(), uid: tk.Run.UID, api: newAPIServer(t)}
	p.model = modeltest.NewServer(modeltest.Script{Key: key, Models: map[string]modeltest.Dialogue{modeltest.ModelName: {Turns: turns}}})
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests++; hangs != nil {
			hangs(requests)
		}
		p.model.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p.write(t, tk, task.Snapshot{
		Version: task.SnapshotVersion,
		Agent:   task.Agent{Name: "a", Instructions: "Work.", Events: "Full", ParallelTools: 4, Tools: []task.Tool{{Builtin: "Files"}, {Builtin: "Think"}}},
		Models:  []task.Model{{Name: "m", Provider: "OpenAICompatible", Model: modeltest.ModelName, Endpoint: server.URL + "/v1", SecretKey: task.SecretKey{Secret: "keys", Key: "api-key"}}},
	})
	return p
}

// write makes the files that kubelet and operator would.
func (p *pod) write(t testing.TB, tk task.Task, s task.Snapshot) {
	t.Helper()
	snapshot, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	tk.Version, tk.SnapshotHash, tk.Limits.Steps, tk.Attempt, tk.Durable = task.Version, task.Hash(snapshot), 30, 1, true
	taskFile, err := json.Marshal(tk)
	if err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.api.Certificate().Raw})
	for name, content := range map[string]string{
		task.TaskFile: string(taskFile), task.SnapshotFile: string(snapshot), task.SignalsFile: "",
		task.TokenDir + "/token": "token", task.TokenDir + "/ca.crt": string(ca), task.TokenDir + "/namespace": tk.Run.Namespace,
		task.SecretsDir + "/keys/api-key": key, task.TerminationLog: "",
	} {
		write(t, content, p.root, name)
	}
	for _, dir := range []string{task.StateDir, task.Workspace, task.Home} {
		if err := os.MkdirAll(filepath.Join(p.root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(program(t, "runner"), filepath.Join(p.root, "runner")); err != nil {
		t.Fatal(err)
	}
}

// mount gives the pod what another one has left, as the claim of a finished Run is mounted.
func (p *pod) mount(t testing.TB, before *pod) *pod {
	t.Helper()
	for from, to := range map[string]string{task.StateDir: task.SourceDir + "/state", task.Workspace: task.SourceDir + "/workspace", task.Home: task.SourceDir + "/home"} {
		if err := os.CopyFS(filepath.Join(p.root, to), os.DirFS(filepath.Join(before.root, from))); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// command is the program as the first process of a container of the pod.
func (p *pod) command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	address, err := url.Parse(p.api.URL)
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(address.Host)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "/runner", args...)
	c.Dir, c.Stdout, c.Stderr = "/", io.Discard, &p.log
	c.Env = []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port, task.EnvPodUID + "=pod-1"}
	c.SysProcAttr = &syscall.SysProcAttr{Chroot: p.root, Cloneflags: syscall.CLONE_NEWPID}
	if os.Getuid() != 0 {
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	return c
}

// ends runs the program to its end.
func (p *pod) ends(t testing.TB, args ...string) int {
	t.Helper()
	c := p.command(t, args...)
	err := c.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode()
}

// finishes runs the containers of the pod, which succeed.
func (p *pod) finishes(t testing.TB) *pod {
	t.Helper()
	for _, args := range [][]string{{task.FetchMode}, nil} {
		if code := p.ends(t, args...); code != task.ExitCommitted {
			t.Fatalf("%v ends with exit code %d:\n%s\n%+v", args, code, p.log.String(), p.api.last.Result)
		}
	}
	return p
}

// asked is the last request to the model.
func (p *pod) asked(t testing.TB) string {
	t.Helper()
	all := p.model.Requests()
	if len(all) == 0 {
		t.Fatal("the model was not asked")
	}
	return string(all[len(all)-1].Raw)
}

// wants compares what the model was asked last.
func (p *pod) wants(t testing.TB, has, hasNot []string) {
	t.Helper()
	asked := p.asked(t)
	for _, text := range has {
		if !strings.Contains(asked, text) {
			t.Errorf("the model has not read %q", text)
		}
	}
	for _, text := range hasNot {
		if strings.Contains(asked, text) {
			t.Errorf("the model has read %q", text)
		}
	}
}

// content returns a file of the pod.
func (p *pod) content(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(p.root, name))
	if err != nil {
		t.Error(err)
	}
	return string(data)
}

func taskOf(name, prompt string, c *task.Continue) task.Task {
	return task.Task{Run: task.Run{Namespace: "team-a", Name: name, UID: "uid-of-" + name}, Prompt: prompt, Continue: c}
}

// answered are the turns of a model that has answered so often before, in the session that is continued.
func answered(times int, turns ...modeltest.Turn) []modeltest.Turn {
	return append(make([]modeltest.Turn, times), turns...)
}

var (
	writeA = call("Write", `{"path":"a.txt","content":"first"}`)
	think  = call("Think", `{"thought":"a long thought"}`)
	done   = modeltest.Turn{Text: "All is done."}
)

// killedPod is the pod of a Run that was killed while its model answered for the third time.
func killedPod(t *testing.T) *pod {
	t.Helper()
	asked, ended := make(chan struct{}), make(chan struct{})
	p := newPod(t, taskOf("one", "Write a file", nil), func(request int) {
		if request == 3 {
			close(asked)
			<-ended
		}
	}, writeA, think, done)
	if code := p.ends(t, task.FetchMode); code != task.ExitCommitted {
		t.Fatalf("exit code %d: %s", code, p.log.String())
	}
	c := p.command(t)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	_ = c.Process.Kill()
	_ = c.Wait()
	close(ended)
	return p
}

// Runs of the real program continue Runs that finished or were killed, to their end and from a step, and each other.
func TestPodsThatContinueOtherRuns(t *testing.T) {
	for name, tc := range map[string]struct {
		first    func(t *testing.T) *pod
		answered int
		says     []string
		hasNot   []string
	}{
		"finished": {
			func(t *testing.T) *pod {
				t.Helper()
				return newPod(t, taskOf("one", "Write a file", nil), nil, writeA, think, done).finishes(t)
			}, 3, []string{"Write a file", "All is done.", "which ended with Finished"}, nil,
		},
		"killed": {killedPod, 2, []string{"Write a file", "a long thought", "which ended with no result"}, []string{"All is done."}},
	} {
		t.Run(name, func(t *testing.T) {
			first := tc.first(t)
			write(t, "kept", first.root, task.Home, ".cache", "x")
			from := &task.Continue{Run: "one", RunUID: "uid-of-one"}
			second := newPod(t, taskOf("two", "Read the file", from), nil,
				answered(tc.answered, call("Read", `{"path":"a.txt"}`), call("Write", `{"path":"b.txt","content":"second"}`), done)...).mount(t, first).finishes(t)
			second.wants(t, append(tc.says, "Read the file", "1  first"), tc.hasNot)
			if a, b, home := second.content(t, task.Workspace+"/a.txt"), second.content(t, task.Workspace+"/b.txt"), second.content(t, task.Home+"/.cache/x"); a+b+home != "firstsecondkept" {
				t.Errorf("the files are %q, %q, %q", a, b, home)
			}

			fork := newPod(t, taskOf("fork", "Another way", &task.Continue{Run: "one", RunUID: "uid-of-one", Step: 3}), nil, answered(1, done)...).mount(t, first).finishes(t)
			fork.wants(t, []string{"Write a file", "Another way", "from its step 3 on"}, []string{"a long thought"})

			third := newPod(t, taskOf("three", "And again", &task.Continue{Run: "two", RunUID: "uid-of-two"}), nil, answered(tc.answered+3, done)...).mount(t, second).finishes(t)
			third.wants(t, []string{"Write a file", "Read the file", "And again", "1  first"}, nil)
		})
	}
}

// share gives the pod the volume that another one has left, as it is mounted for a Run that works on its files. before
// is in a folder of its own there, unless it made the volume.
func (p *pod) share(t testing.TB, before *pod) *pod {
	t.Helper()
	claim := map[string]string{task.StateDir: "state", task.Workspace: "workspace", task.Home: "home"}
	if _, err := os.Stat(filepath.Join(before.root, task.OriginDir)); err == nil {
		claim[task.StateDir], claim[task.OriginDir] = task.StateFolder(before.uid), "origin"
	}
	if err := os.MkdirAll(filepath.Join(p.root, task.OriginDir), 0o700); err != nil {
		t.Fatal(err)
	}
	for from, folder := range claim {
		to := []string{filepath.Join(task.SourceDir, folder)}
		if from != task.StateDir { // the state of this Run is its own
			to = append(to, from)
		}
		for _, dir := range to {
			if err := os.CopyFS(filepath.Join(p.root, dir), os.DirFS(filepath.Join(before.root, from))); err != nil {
				t.Fatal(err)
			}
		}
	}
	return p
}

// Runs that work on the files of a Run itself, one after the other, as a fork, and as the source of a copy.
func TestPodsThatShareTheFilesOfOtherRuns(t *testing.T) {
	first := newPod(t, taskOf("one", "Write a file", nil), nil, writeA, think, done).finishes(t)
	write(t, "kept", first.root, task.Home, ".cache", "x")
	from := func(name string, step int64) *task.Continue {
		return &task.Continue{Run: name, RunUID: "uid-of-" + name, Step: step, Workspace: task.ContinueShare}
	}
	second := newPod(t, taskOf("two", "Read the file", from("one", 0)), nil,
		answered(3, call("Read", `{"path":"a.txt"}`), call("Write", `{"path":"b.txt","content":"second"}`), done)...).share(t, first).finishes(t)
	second.wants(t, []string{"Write a file", "All is done.", "Read the file", "1  first"}, nil)
	third := newPod(t, taskOf("three", "And again", from("two", 0)), nil, answered(6, call("Read", `{"path":"b.txt"}`), done)...).share(t, second).finishes(t)
	third.wants(t, []string{"Write a file", "Read the file", "And again", "1  second"}, nil)
	if home := third.content(t, task.Home+"/.cache/x"); home != "kept" {
		t.Errorf("the home has %q", home)
	}
	// The files have no versions: a fork sees those of the last Run.
	fork := newPod(t, taskOf("fork", "Another way", from("one", 3)), nil, answered(1, call("Read", `{"path":"b.txt"}`), done)...).share(t, second)
	if err := os.CopyFS(filepath.Join(fork.root, task.SourceDir, "state"), os.DirFS(filepath.Join(first.root, task.StateDir))); err != nil {
		t.Fatal(err)
	}
	fork.finishes(t).wants(t, []string{"Write a file", "Another way", "1  second"}, []string{"a long thought"})

	copied := newPod(t, taskOf("four", "Copy it", &task.Continue{Run: "two", RunUID: "uid-of-two"}), nil, answered(6, call("Read", `{"path":"b.txt"}`), done)...)
	for from, folder := range map[string]string{task.StateDir: task.StateFolder("uid-of-two"), task.OriginDir: "origin", task.Workspace: "workspace", task.Home: "home"} {
		if err := os.CopyFS(filepath.Join(copied.root, task.SourceDir, folder), os.DirFS(filepath.Join(second.root, from))); err != nil {
			t.Fatal(err)
		}
	}
	copied.finishes(t).wants(t, []string{"Write a file", "Read the file", "Copy it", "1  second"}, nil)
}

// A pod whose source is a volume that was bound empty ends in its first container, and its runner would too.
func TestAPodWithAnEmptySource(t *testing.T) {
	p := newPod(t, taskOf("two", "Read the file", &task.Continue{Run: "one", RunUID: "uid-of-one"}), nil, done)
	for _, dir := range []string{task.SourceDir + "/state", task.SourceDir + "/workspace", task.SourceDir + "/home"} {
		if err := os.MkdirAll(filepath.Join(p.root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{task.FetchMode}, nil} {
		if code := p.ends(t, args...); code != task.ExitCode(task.ReasonNothingToContinue) {
			t.Errorf("%v ends with exit code %d:\n%s", args, code, p.log.String())
		}
		var last task.Termination
		if err := json.Unmarshal([]byte(p.content(t, task.TerminationLog)), &last); err != nil || last.Result.Reason != task.ReasonNothingToContinue {
			t.Errorf("%v leaves %+v, %v", args, last.Result, err)
		}
	}
	if n := len(p.model.Requests()); n > 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

// A kill at any moment of the copy leaves it to begin again.
func TestAPodThatIsKilledWhileItCopies(t *testing.T) {
	first := newPod(t, taskOf("one", "Write a file", nil), nil, writeA, done).finishes(t)
	for i := range 400 {
		write(t, strings.Repeat("x", 10_000), first.root, task.Workspace, "d"+string(rune('a'+i%20)), "f"+string(rune('a'+i/20)))
	}
	p := newPod(t, taskOf("two", "Read the file", &task.Continue{Run: "one", RunUID: "uid-of-one"}), nil, answered(2, done)...).mount(t, first)
	for i := range 8 {
		p.killedBehind(t, 50*i)
	}
	p.finishes(t)
	if got, want := len(p.files(t)), 401; got != want {
		t.Errorf("the workspace has %d files, want %d", got, want)
	}
}

// killedBehind kills a fetch when it has copied a number of files.
func (p *pod) killedBehind(t testing.TB, files int) {
	t.Helper()
	// What the last one has left would be counted. The pod that ends the test has to remove it itself.
	if err := os.RemoveAll(filepath.Join(p.root, task.Workspace, ".deckhand-fetch")); err != nil {
		t.Fatal(err)
	}
	c := p.command(t, task.FetchMode)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = c.Wait()
		close(ended)
	}()
	for len(p.files(t)) < files {
		select {
		case <-ended:
			t.Fatalf("it has ended before it had copied %d files:\n%s", files, p.log.String())
		default:
		}
	}
	_ = c.Process.Kill()
	<-ended
	if c.ProcessState.ExitCode() == task.ExitCommitted {
		t.Errorf("it was not killed behind %d files", files)
	}
}

// files are the paths of all files in the workspace, also those that are not in place.
func (p *pod) files(t testing.TB) []string {
	t.Helper()
	var found []string
	_ = filepath.WalkDir(filepath.Join(p.root, task.Workspace), func(name string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			found = append(found, name)
		}
		return nil // it may be removed meanwhile
	})
	return found
}
