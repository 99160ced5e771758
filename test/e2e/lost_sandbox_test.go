//go:build e2e

package e2e

import (
	"context"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// effect is a command that does something once and then takes its time.
const effect = `echo once >>effects; echo begun; sleep 300`

// If the sandbox is lost during a command, the model reads it, the kubelet restarts the
// sandbox, and the next command runs there.
func TestASandboxThatIsLostDuringACommand(t *testing.T) {
	t.Parallel()
	const byItself = "it cannot accept connections"
	for name, lose := range map[string]func(*testNamespace, *corev1.Pod) int32{
		byItself: func(p *testNamespace, pod *corev1.Pod) int32 {
			p.execUntil(pod.Name, "sandbox", "test", "-s", "/workspace/effects")
			limit := exec.CommandContext(p.t.Context(), "prlimit", "--pid", strconv.Itoa(firstOf(pod.UID, "sandbox")), "--nofile=0:0")
			limit.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: 65532}} // as one of its own user could
			if out, err := limit.CombinedOutput(); err != nil {
				p.t.Fatalf("limiting the files of the sandbox: %v: %s", err, out)
			}
			connect := "import socket; socket.socket(socket.AF_UNIX).connect('" + task.SandboxDir + "/" + task.SandboxSocket + "')"
			if out, err := p.execIn(pod.Name, "sandbox", "python3", "-c", connect); err != nil {
				p.t.Fatalf("connecting: %v: %s", err, out)
			}
			return 1
		},
		"it is told to end": func(p *testNamespace, pod *corev1.Pod) int32 {
			p.execUntil(pod.Name, "sandbox", "sh", "-c", "test -s /workspace/effects && kill 1")
			return 0
		},
		"it is killed": func(p *testNamespace, pod *corev1.Pod) int32 {
			p.execUntil(pod.Name, "sandbox", "test", "-s", "/workspace/effects")
			if !killFirst(pod.UID, "sandbox") {
				p.t.Fatal("no sandbox of the pod runs on this machine")
			}
			return 137
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newNamespace(t)
			p.agent("interrupted", withShell)
			run := p.run("interrupted")
			code := lose(p, p.pod(run, 1))
			p.restarted("interrupted-1", code)
			run = p.ends(run, "True Finished")
			results, why := p.toolResults("interrupted-1"), "the sandbox was restarted"
			if name == byItself {
				why = "the sandbox ended itself and was restarted, because "
			}
			if len(results) != 2 || !strings.Contains(results[0], why) || !strings.Contains(results[0], "may have partly happened") || !strings.Contains(results[0], "begun") ||
				!strings.HasPrefix(results[1], "1\n") {
				t.Errorf("the results of the tool calls are %q", results)
			}
			if run.Status.Attempt.Number != 1 || run.Status.Failures+run.Status.Disruptions != 0 {
				t.Errorf("attempt %d, %d failures, %d disruptions", run.Status.Attempt.Number, run.Status.Failures, run.Status.Disruptions)
			}
		})
	}
}

// restarted waits until the kubelet says that it started the sandbox of a pod again,
// after it had ended with a code.
func (p *testNamespace) restarted(pod string, code int32) {
	p.t.Helper()
	var last corev1.ContainerStatus
	err := until(p.t.Context(), func(ctx context.Context) (bool, error) {
		var seen corev1.Pod
		err := cluster.admin.Get(ctx, client.ObjectKey{Namespace: p.name, Name: pod}, &seen)
		for _, s := range seen.Status.InitContainerStatuses {
			if s.Name == "sandbox" {
				last = s
			}
		}
		return last.RestartCount > 0, err
	})
	end := last.LastTerminationState.Terminated
	if err != nil || end == nil || end.ExitCode != code {
		p.t.Errorf("the sandbox of %s is %+v, want it started again after code %d: %v", pod, last, code, err)
	}
}

// If the pod is lost during a command, the next attempt does not repeat it, and the model
// reads that.
func TestAPodThatIsLostDuringACommand(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("interrupted", withShell, onVolume)
	run := p.run("interrupted")
	pod := p.pod(run, 1)
	p.execUntil(pod.Name, "sandbox", "test", "-s", "/workspace/effects")
	p.killPod(pod)
	run = p.ends(run, "True Finished")
	if run.Status.Attempt.Number != 2 || run.Status.Disruptions != 1 || run.Status.Failures != 0 {
		t.Errorf("attempt %d, %d failures, %d disruptions", run.Status.Attempt.Number, run.Status.Failures, run.Status.Disruptions)
	}
	results := p.toolResults("interrupted-2")
	log := p.log(t.Context(), "interrupted-2")
	if len(results) == 0 || !strings.HasPrefix(results[len(results)-1], "1\n") || !strings.Contains(log, "I read: ") || !strings.Contains(log, "may have partly happened") {
		t.Errorf("the results of the tool calls are %q; the log:\n%s", results, log)
	}
}

// Commands can make the sandbox unreachable for the runner, because they have the same user:
// the model reads an error, and the Run continues.
func TestASandboxThatIsMadeUnreachable(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("blocking", withShell)
	p.ends(p.run("blocking"), "True Finished")
	if results := p.toolResults("blocking-1"); len(results) != 2 || !strings.Contains(results[1], "the sandbox did not come up") {
		t.Errorf("the results of the tool calls are %q", results)
	}
}

// If an MCP server exits during a call, the model reads an error, and the next call finds it
// restarted.
func TestAnMCPServerThatExitsDuringACallRestarts(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "harbor"}, StringData: map[string]string{"key": harborKey}}, harborServer())
	p.agent("sunk", func(a *v1alpha1.Agent) { a.Spec.Tools = append(a.Spec.Tools, v1alpha1.Tool{Toolset: "harbor"}) })
	run := p.ends(p.run("sunk"), "True Finished")
	results := p.toolResults("sunk-1")
	if len(results) != 2 || strings.Contains(results[0], "letters") || !strings.Contains(results[1], "the key has 28 letters") {
		t.Errorf("the results of the tool calls are %q", results)
	}
	if run.Status.Attempt.Number != 1 {
		t.Errorf("it took %d attempts", run.Status.Attempt.Number)
	}
}

// File tools run in the runner, which can read secrets. They do not follow links that commands
// created in the workspace to them.
func TestFileToolsDoNotFollowLinksOutOfTheWorkspace(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("linker", withShell, onVolume)
	run := p.ends(p.run("linker"), "True Finished")
	results := p.toolResults("linker-1")
	if len(results) != 3+len(linked)+bursts*(burst+1) {
		t.Fatalf("the results of the tool calls are %d results: %q", len(results), results)
	}
	for _, said := range results {
		if strings.Contains(said, "‹secret") || strings.Contains(said, "eyJ") || strings.Contains(said, "segment") {
			t.Errorf("a tool found its way: %q", said)
		}
	}
	caught := 0 // while the link pointed at the secret
	for _, said := range results {
		if strings.Contains(said, "'swap/api-key' leads through a link to an absolute path") {
			caught++
		}
	}
	if caught == 0 {
		t.Errorf("no call met the link to the secret: %q", results)
	}
	if last := results[len(results)-1]; !strings.Contains(last, "written 0") {
		t.Errorf("at the end: %q", last)
	}
	p.holdsNoSecret(run)
}

// swapping makes every kind of link, and leaves one that changes all the time.
const swapping = `mkdir -p place real; echo here >real/api-key
ln -s /deckhand/secrets/key/api-key leak; ln -s /deckhand/token/token token; ln -s / root
ln -s ../deckhand/secrets/key up; ln -s /deckhand/state state; mkfifo pipe; ln -s /proc/self/environ self
while :; do ln -sfn /deckhand/secrets/key swap; ln -sfn real swap; : >swapping; done`

// awaitSwapping waits until the links are there and one changes.
const awaitSwapping = `until test -e swapping; do sleep 0.1; done`

// linked are calls that follow the links.
var linked = followed()

func followed() []modeltest.Call {
	all := []modeltest.Call{call("Grep", args{"pattern": "sk-|eyJ", "path": "/workspace"}), call("Glob", args{"pattern": "root/deckhand/**"})}
	for _, path := range []string{"leak", "token", "root/deckhand/token/token", "up/api-key", "self", "pipe", "/proc/1/environ", "/deckhand/secrets/key/api-key", "../deckhand/token/token"} {
		all = append(all, call("Read", args{"path": path}))
	}
	for _, path := range []string{"state/evil", "root/deckhand/state/evil", "token"} {
		all = append(all, call("Write", args{"path": path, "content": "evil"}))
	}
	return all
}

// The link that changes is read in bursts, because for the length of one it may not change on a busy machine.
const bursts, burst = 5, 30

// racing are the turns that read the link that changes.
func racing() []modeltest.Turn {
	var all []modeltest.Turn
	for range bursts {
		reads := []modeltest.Call{}
		for range burst {
			reads = append(reads, call("Read", args{"path": "swap/api-key"}))
		}
		all = append(all, does(reads...), does(call("Shell", sh("sleep 0.1"))))
	}
	return all
}

// lostSandboxScripts run commands under which sandbox, pod or server are lost.
var lostSandboxScripts = map[string]modeltest.Dialogue{
	"interrupted": turns(
		does(call("Shell", sh(effect, withTimeout(300)))),
		modeltest.Turn{Text: "I read: {{.LastToolResult}}", Calls: []modeltest.Call{call("Shell", sh(`wc -l <effects`))}},
		says("Done."),
	),
	"blocking": turns(does(call("Shell", sh("chmod 0 /deckhand/sandbox/run"))), does(call("Shell", sh("echo here"))), says("Done.")),
	"sunk":     turns(does(call("harbor__sink", args{})), does(call("harbor__tide", args{})), says("Done.")),
	"linker": turns(slices.Concat(
		[]modeltest.Turn{
			does(call("Shell", sh(swapping, args{"background": true}))),
			does(call("Shell", sh(awaitSwapping))),
			does(linked...),
		},
		racing(),
		[]modeltest.Turn{does(call("Shell", sh(`echo written $(find . -name evil | wc -l)`))), says("Done.")},
	)...),
}
