//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The kernel kills a runner that reaches its memory limit while a command runs in the
// sandbox: the attempt is charged to retries, and the next one does not run the command
// again.
func TestARunnerThatIsOutOfMemoryUnderACommand(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("interrupted", withShell, onVolume)
	run := p.run("interrupted")
	pod := p.pod(run, 1)
	p.execUntil(pod.Name, "sandbox", "test", "-s", "/workspace/effects")
	p.exhaustMemory(pod)
	run = p.ends(run, "True Finished")
	if run.Status.Attempt.Number != 2 || run.Status.Failures != 1 || run.Status.Disruptions != 0 {
		t.Errorf("attempt %d, %d failures, %d disruptions, want attempt 2, 1 failure, no disruption", run.Status.Attempt.Number, run.Status.Failures, run.Status.Disruptions)
	}
	var first corev1.Pod
	if err := cluster.admin.Get(t.Context(), client.ObjectKeyFromObject(pod), &first); err != nil {
		t.Fatal(err)
	}
	if end := first.Status.ContainerStatuses[0].State.Terminated; end == nil || end.Reason != "OOMKilled" {
		t.Errorf("the runner of attempt 1 ended with %+v, want OOMKilled", end)
	}
	results := p.toolResults("interrupted-2")
	log := p.log(t.Context(), "interrupted-2")
	if len(results) == 0 || !strings.HasPrefix(results[len(results)-1], "1\n") || !strings.Contains(log, "may have partly happened") {
		t.Errorf("the tool results of attempt 2 are %q; its log:\n%s", results, log)
	}
}

// exhaustMemory starts a process in the cgroup of a pod's runner that allocates more
// than the limit, and makes the runner the process that the kernel kills first.
func (p *testNamespace) exhaustMemory(pod *corev1.Pod) {
	p.t.Helper()
	pid := firstOf(pod.UID, "runner")
	if pid == 0 {
		p.t.Skip("the node is another machine: memory cannot be charged to its containers from here")
	}
	cgroup, err := memoryCgroup(pid)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0); err != nil {
		p.t.Fatalf("making the runner the first to be killed: %v", err)
	}
	const allocate = "import os, sys, time; open(sys.argv[1] + '/cgroup.procs', 'w').write(str(os.getpid())); held = b'x' * (512 << 20); time.sleep(60)"
	process := exec.CommandContext(p.t.Context(), "python3", "-c", allocate, cgroup)
	var output bytes.Buffer
	process.Stderr = &output
	if err := process.Start(); err != nil {
		p.t.Fatalf("starting a process in the runner's cgroup: %v", err)
	}
	p.t.Cleanup(func() {
		_ = process.Process.Kill() // the kernel may have killed it as well
		_ = process.Wait()
		if p.t.Failed() {
			p.t.Logf("the process in the runner's cgroup wrote: %s", output.String())
		}
	})
}

// memoryCgroup is the folder of the cgroup that limits the memory of a process.
func memoryCgroup(pid int) (string, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "", err
	}
	defer file.Close()
	unified := ""
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		hierarchy := strings.SplitN(lines.Text(), ":", 3)
		switch {
		case len(hierarchy) != 3:
		case hierarchy[1] == "memory":
			return filepath.Join("/sys/fs/cgroup/memory", hierarchy[2]), nil
		case hierarchy[0] == "0":
			unified = filepath.Join("/sys/fs/cgroup", hierarchy[2])
		}
	}
	return unified, lines.Err()
}
