//go:build e2e

package e2e

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// forkBomb starts processes without end. Should nothing else stop it, ulimit keeps
// it from taking down the machine. What has forked becomes a sleep, because a shell
// that cannot fork exits: on a busy machine all could be gone, or the command with
// them, before the processes are counted.
const forkBomb = `ulimit -u 800; bomb() { bomb | bomb & exec sleep 100; }; bomb & exec sleep 100`

// misbehavior is what a model's commands do, in their order, and what the model
// reads of it: one of the texts between " | ".
var misbehavior = []struct {
	what string
	args args
	want []string
}{
	{"ignores SIGTERM", sh(`trap '' TERM; echo begun; while :; do sleep 1; done`, withTimeout(10)), []string{"begun", "killed: timed out after 10"}},
	{"leaves a grandchild that holds the pipe", sh(`(setsid sleep 1000 &); echo left`), []string{"left", "exit code: 0"}},
	{"finds nothing of what it left", sh(`pgrep -c sleep || echo none`), []string{"none"}},
	{"prints 1 GiB", sh(`head -c 1G /dev/zero | tr '\0' x`, withTimeout(300)), []string{"exit code: 0", "/results/"}},
	{"forks without end", sh(forkBomb, withTimeout(60)), []string{"killed: more processes or threads at once than it may have"}},
	{"takes more memory than there is", sh(`python3 -c 'b = bytearray(1 << 30); print(len(b))'`, withTimeout(60)), []string{"out of memory | exit code: 137"}}, // whoever is first: the server of the sandbox, or the kernel with all of the sandbox or one process
	{"fills the disk", sh(`head -c 300M /dev/zero >big; rm big`), []string{"No space left on device", "exit code: 0"}},
	{"leaves the disk full", sh(`head -c 300M /dev/zero >big`), []string{"No space left on device", "exit code: 1"}},
	{"makes room again", sh(`rm big; df --output=pcent . | tail -1`), []string{"%\nexit code: 0"}},
	{"goes on", sh(`echo whole`), []string{"whole\nexit code: 0"}},
}

// Commands that exceed a limit are ended with all their processes, the model reads why, and
// the Run continues.
func TestTheModelReadsHowMisbehavingCommandsEnd(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.enforceSizes()
	p.agent("misbehaving", withShell, onVolume, func(a *v1alpha1.Agent) {
		size, processes := resource.MustParse("96Mi"), int32(64)
		a.Spec.Workspace.Size, a.Spec.Sandbox.Processes = &size, &processes
		a.Spec.Sandbox.Resources = &corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
		}
	})
	run := p.ends(p.run("misbehaving"), "True Finished")
	if run.Status.Failures+run.Status.Disruptions != 0 {
		t.Errorf("%d failures, %d disruptions", run.Status.Failures, run.Status.Disruptions)
	}
	results := p.toolResults("misbehaving-1")
	if len(results) != len(misbehavior) {
		t.Fatalf("the model has results of %d calls of %d", len(results), len(misbehavior))
	}
	for i, m := range misbehavior {
		for _, want := range m.want {
			if !containsOne(results[i], strings.Split(want, " | ")) {
				t.Errorf("who %s reads %q, want %q", m.what, shorten(results[i]), want)
			}
		}
	}
}

func containsOne(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// shorten is a text in a size that one reads.
func shorten(text string) string {
	const most = 600
	if len(text) <= most {
		return text
	}
	return text[:most/2] + " … " + text[len(text)-most/2:]
}

// misbehavingScripts run commands that exceed their limits.
var misbehavingScripts = map[string]modeltest.Dialogue{"misbehaving": misbehavingScript()}

func misbehavingScript() modeltest.Dialogue {
	var all []modeltest.Turn
	for _, m := range misbehavior {
		all = append(all, does(call("Shell", m.args)))
	}
	return turns(append(all, says("Done."))...)
}
