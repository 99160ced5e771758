//go:build linux

package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/sandboxtest"
)

// What a part of the confinement promises, as lines of Python that must be refused. BAIT is a
// file of its own beside the socket.
var promised = map[string][]string{
	"process": {
		`open("/proc/PID/environ").read()`, `open("/proc/PID/mem", "rb").read(1)`, `os.setuid(0)`,
		`resource.prlimit(PID, resource.RLIMIT_NOFILE, (64, 64))`, `os.setpriority(os.PRIO_PROCESS, PID, 5)`,
	},
	"files": {
		`os.remove("BAIT")`, `os.rename("BAIT", "BAIT.moved")`, `os.truncate("BAIT", 0)`, `open("BAIT", "w")`, `open("BAIT.new", "w")`,
		`os.link("BAIT", "BAIT.second")`, `os.symlink("/", "BAIT.link")`, `os.mkdir("BAIT.dir")`, `socket.socket(socket.AF_UNIX).bind("BAIT.s")`,
	},
	"network": {
		`connect("127.0.0.1", LOW)`, `socket.socket(socket.AF_INET, socket.SOCK_DGRAM)`, `socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)`,
		`socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)`,
	},
}

// The confinement promises what holds, whatever version of Landlock the kernel has: each
// attempt against a part that is reported as enforced is refused, and a part is reported as
// unenforced because an attempt succeeds.
func TestWhatIsReportedHoldsOnEveryKernel(t *testing.T) {
	const yes, ports, no = sandbox.Enforced, sandbox.PortsOnly, sandbox.Unenforced
	newest := version(t)
	for abi, want := range map[int]sandbox.Confinement{
		0: {Process: yes, Files: no, Network: no},
		2: {Process: yes, Files: no, Network: no}, // files can be truncated
		3: {Process: yes, Files: yes, Network: no},
		4: {Process: yes, Files: yes, Network: ports},
		5: {Process: yes, Files: yes, Network: ports},
		6: {Process: yes, Files: yes, Network: ports},
	} {
		t.Run(fmt.Sprintf("version %d", abi), func(t *testing.T) {
			if abi > newest {
				t.Skipf("not tried: this kernel has version %d of Landlock", newest)
			}
			s := sandboxtest.Start(t, sandboxtest.Confined(), sandboxtest.Landlock(abi))
			c := sandbox.Dial(s.Socket)
			t.Cleanup(func() { c.Close() })
			got := needs(t, c, 0).Confinement
			want.LandlockABI = abi
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("confinement, -want +got:\n%s", diff)
			}
			for part, reported := range map[string]string{"process": got.Process, "files": got.Files, "network": got.Network} {
				succeeded := attemptAll(t, c, s, promised[part])
				if (reported == no) != (len(succeeded) > 0) {
					t.Errorf("%s is %s, and these succeed: %v", part, reported, succeeded)
				}
			}
		})
	}
}

// version returns the version of Landlock of this kernel.
func version(t *testing.T) int {
	t.Helper()
	s := sandboxtest.Start(t, sandboxtest.Confined())
	c := sandbox.Dial(s.Socket)
	defer c.Close()
	return needs(t, c, 0).Confinement.LandlockABI
}

// needsVersion skips a test on a kernel whose Landlock is older, before it starts a sandbox that
// would refuse to serve there.
func needsVersion(t *testing.T, abi int) {
	t.Helper()
	if v := version(t); v < abi {
		t.Skipf("not tried: this kernel has version %d of Landlock, and it takes %d", v, abi)
	}
}

// attemptAll returns the lines that are not refused. One Python makes all attempts.
func attemptAll(t *testing.T, c *sandbox.Client, s *sandboxtest.Server, lines []string) (succeeded []string) {
	t.Helper()
	low, script := fmt.Sprint(listening(t, true)), attempts
	for i, line := range lines {
		bait := filepath.Join(filepath.Dir(s.Socket), fmt.Sprintf("bait-%d", i))
		if err := errors.Join(os.WriteFile(bait, []byte("x"), 0o666), os.Chown(bait, sandboxtest.User, sandboxtest.User)); err != nil {
			t.Fatal(err)
		}
		fill := strings.NewReplacer("BAIT", bait, "PID", fmt.Sprint(s.FirstPID()), "LOW", low)
		script += "attempt(lambda: " + fill.Replace(line) + ")\n"
	}
	got := run(t, c, sandbox.Command{Args: []string{"python3", "-c", script}})
	outcomes := strings.Fields(got.stdout)
	if len(outcomes) != len(lines) {
		t.Fatalf("the attempts print %q, %q", got.stdout, got.stderr)
	}
	for i, o := range outcomes {
		if o == "ok" {
			succeeded = append(succeeded, lines[i])
		}
	}
	return succeeded
}
