//go:build e2e

package e2e

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// demoPassword is that of the git server of the coding agent.
const demoPassword = "git-demo-0123456789"

// shBlock is what a page says to type.
var shBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// The coding agent does what its page says, typed as it is written there: it
// tests, mends, tests, asks, outlives its pod, and publishes what it mended.
func TestCodingAgent(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	shell := p.newShell()
	blocks := commandsOf(t, "examples/coding-agent/README.md")
	if len(blocks) != 7 {
		t.Fatalf("the page has %d blocks to type", len(blocks))
	}
	run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "fix-tide"}}
	reasons := p.watchReasons(run)

	shell(blocks[0]) // apply
	printed := shell(blocks[1])
	waiting := p.await(run, "asks", func(r *v1alpha1.Run) bool { return strings.Contains(succeeded(r), v1alpha1.ReasonAwaitingApproval) })
	request := waiting.Status.Progress.Pending[0]
	if request.Tool != "Shell" || len(request.Digest) != 64 || !strings.Contains(printed, request.ID) || !strings.Contains(printed, "rm -r bin && git status") {
		t.Fatalf("it asks %+v, and the terminal shows %s", request, printed)
	}
	p.checkNoPassword("fix-tide-1")

	shell(blocks[2]) // the pod goes
	again := p.await(run, "asks again", func(r *v1alpha1.Run) bool {
		return r.Status.Attempt.Number == 2 && r.Status.Progress.Attempt == 2 && len(r.Status.Progress.Pending) == 1
	}).Status.Progress.Pending[0]
	if again.ID != request.ID || again.Digest != request.Digest {
		t.Errorf("it asks otherwise now: %+v, before %+v", again, request)
	}

	shell(blocks[3]) // a person decides
	shown := shell(blocks[4])
	ended := p.ends(run, "True Finished")
	p.checkPublished(ended, shown)
	chain := reasons()
	for _, want := range []string{v1alpha1.ReasonRunning, v1alpha1.ReasonAwaitingApproval, v1alpha1.ReasonRetrying, "Finished"} {
		at := slices.Index(chain, want)
		if at < 0 {
			t.Fatalf("the reasons were %q, want %s among them", reasons(), want)
		}
		chain = chain[at:]
	}
	decided := ended.Status.Progress.Decided
	if len(decided) != 1 || decided[0].Name != "fix-tide."+request.ID || decided[0].Digest != request.Digest || decided[0].Refused != "" {
		t.Errorf("it acted on %+v", decided)
	}
	for _, pod := range []string{"fix-tide-1", "fix-tide-2"} {
		if strings.Contains(p.log(t.Context(), pod), demoPassword) {
			t.Errorf("the log of %s holds the password", pod)
		}
	}
	p.checkContinued(ended, shell(blocks[5]))
	p.checkForked(ended, shell(blocks[6]))
}

// checkContinued checks that the Run after a Run knew its conversation and had its files, and that it did nothing again.
func (p *testNamespace) checkContinued(first *v1alpha1.Run, shown string) {
	p.t.Helper()
	run := p.ends(&v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "explain-tide"}}, "True Finished")
	result, from := run.Status.Progress.Result, run.Status.ContinuedFrom
	if result.Published == nil || result.Published.Branch != "deckhand/fix-tide" || result.Published.Commit == first.Status.Progress.Result.Published.Commit {
		p.t.Errorf("it published %+v", result.Published)
	}
	if c := run.Status.Progress.Counts; c.ToolCalls != 2 || c.ModelCalls != 3 || len(run.Status.Progress.Decided) != 0 {
		p.t.Errorf("it counts %+v, and decided %+v", c, run.Status.Progress.Decided)
	}
	if from == nil || from.UID != string(first.UID) || !slices.Equal(from.Runs, []string{"fix-tide"}) || from.TotalTokens != first.Status.Progress.Usage.TotalTokens {
		p.t.Errorf("it continued %+v, and Run fix-tide used %+v", from, first.Status.Progress.Usage)
	}
	for _, want := range []string{"A comment says now why", "+\t// The remainder of a negative number is negative.", "1 file changed, 1 insertion(+)", "Work of Run " + p.name + "/explain-tide", "1 Run before it"} {
		if !strings.Contains(shown, want) {
			p.t.Errorf("the terminal lacks %q: %s", want, shown)
		}
	}
	pushes := p.gitLog().Pushes
	if len(pushes) != 2 || pushes[1].Ref != pushes[0].Ref || pushes[1].New != result.Published.Commit {
		p.t.Errorf("the git server saw the pushes %+v", pushes)
	}
}

// checkForked checks that another Model continued from an earlier step, on the files as they were at the end.
func (p *testNamespace) checkForked(first *v1alpha1.Run, shown string) {
	p.t.Helper()
	run := p.ends(&v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "check-tide"}}, "True Finished")
	if c := run.Status.Progress.Counts; c.ToolCalls != 1 || run.Status.ContinuedFrom.UID != string(first.UID) || run.Status.Progress.Model != "careful" {
		p.t.Errorf("it counts %+v, and continued %+v with Model %s", c, run.Status.ContinuedFrom, run.Status.Progress.Model)
	}
	for _, want := range []string{"I test what the other Model changed.", "tested", "The change is right, and it is the smallest one."} {
		if !strings.Contains(shown, want) {
			p.t.Errorf("the terminal lacks %q: %s", want, shown)
		}
	}
	if n := len(p.gitLog().Pushes); n != 2 {
		p.t.Errorf("the git server saw %d pushes", n)
	}
}

// checkPublished checks that a Run says where its branch is, and that the branch is as the
// agent left the files: one commit, by Deckhand.
func (p *testNamespace) checkPublished(run *v1alpha1.Run, shown string) {
	p.t.Helper()
	result := run.Status.Progress.Result
	if result.Published == nil || result.Published.Branch != "deckhand/fix-tide" || len(result.Published.Commit) != 40 {
		p.t.Fatalf("it published %+v", result.Published)
	}
	for _, want := range []string{
		result.Published.Commit, "Work of Run " + p.name + "/fix-tide", "the remainder has the sign of the dividend",
		"-\treturn (high - hour) % 12", "+\treturn ((high-hour)%12 + 12) % 12", "1 file changed, 1 insertion(+), 1 deletion(-)",
	} {
		if !strings.Contains(shown, want) {
			p.t.Errorf("the terminal lacks %q: %s", want, shown)
		}
	}
	var files []string
	for _, f := range result.Files {
		files = append(files, f.Path)
	}
	if !slices.Equal(files, []string{"/workspace/tide.go"}) {
		p.t.Errorf("its files are %q", files)
	}
	said := p.gitLog()
	if len(said.Pushes) != 1 || said.Pushes[0].Ref != "refs/heads/deckhand/fix-tide" || said.Pushes[0].New != result.Published.Commit {
		p.t.Errorf("the git server says %+v", said)
	}
	if !strings.Contains(shown, "{\n\treturn ((high-hour)%12 + 12) % 12\n}\n") {
		p.t.Errorf("the file was not copied from the volume: %s", shown)
	}
}

// checkNoPassword checks that the sandbox of a pod does not hold the password of the git server,
// not even for somebody who may look into every file and every process there.
func (p *testNamespace) checkNoPassword(pod string) {
	p.t.Helper()
	command := exec.CommandContext(p.t.Context(), kubectl(), "exec", "--namespace", p.name, pod, "--container", "sandbox", "--", "bash", "-c", `
		env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n'
		grep -rls "$(python3 -c 'import sys; print(sys.argv[1][::-1])' "$0")" /workspace /home /tmp /deckhand /run /var/run /etc /proc/[0-9]*/environ && echo FOU''ND
		ls -d /workspace/.git /deckhand/* /var/run/secrets 2>&1; id -u`, reversed(demoPassword))
	out, err := command.CombinedOutput()
	text := string(out)
	if err != nil || !strings.Contains(text, "65532") {
		p.t.Fatalf("looking into the sandbox: %v: %s", err, text)
	}
	for _, bad := range []string{demoPassword, "FOUND", "/deckhand/token\n", "/deckhand/secrets\n", "/deckhand/state\n", "/deckhand/task\n"} {
		if strings.Contains(text, bad) {
			p.t.Errorf("the sandbox holds %q:\n%s", bad, text)
		}
	}
}

// reversed is a text that does not find itself.
func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// readFile returns a file of the project.
func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(apitest.Root(), path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// commandsOf is what a page of the project says to type, block by block.
func commandsOf(t *testing.T, page string) []string {
	t.Helper()
	var blocks []string
	for _, m := range shBlock.FindAllStringSubmatch(readFile(t, page), -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// watchReasons writes down through which reasons a Run goes, and returns what
// tells them, in their order.
func (p *testNamespace) watchReasons(run *v1alpha1.Run) func() []string {
	p.t.Helper()
	command := exec.CommandContext(p.t.Context(), kubectl(), "get", "runs", "--namespace", p.name, "--field-selector", "metadata.name="+run.Name,
		"--watch", "--output-watch-events", "--output", "json")
	events, err := command.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		p.t.Fatalf("watching: %v", err)
	}
	var found []string
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		found = reasonsOf(events)
	}()
	stop := func() { _ = command.Process.Kill(); _ = command.Wait() }
	p.t.Cleanup(stop)
	return func() []string {
		select {
		case <-ended:
		case <-time.After(waitTimeout):
			stop()
			<-ended
		}
		return found
	}
}

// reasonsOf are the reasons of a Run in their order, until it has finished.
func reasonsOf(events io.Reader) []string {
	var found []string
	for decoder := json.NewDecoder(events); ; {
		var event struct{ Object v1alpha1.Run }
		if decoder.Decode(&event) != nil {
			return found
		}
		for _, c := range event.Object.Status.Conditions {
			if c.Type == v1alpha1.ConditionSucceeded {
				found = append(found, c.Reason)
			}
		}
		if finished(&event.Object) {
			return slices.Compact(found)
		}
	}
}
