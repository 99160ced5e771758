//go:build linux

package cgrouptest

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A fakeKernel is the rules of the kernel for the files of a hierarchy of version 2.
type fakeKernel struct {
	root string
	// isMachine is whether the root is that of the machine, which may have processes and
	// controllers.
	isMachine bool
	// controllers are those that the machine has.
	controllers []string
	// in is the group of each process. A process that is not here has ended.
	in map[string]string
	// starts are processes that one in the root starts whenever one of it is moved.
	starts []string
	// noSwap is whether swap is not counted.
	noSwap bool

	enabled []string
	limits  map[string]string
}

func (k *fakeKernel) write(file, text string) error {
	dir, name := filepath.Split(file)
	dir = filepath.Clean(dir)
	controller, _, _ := strings.Cut(name, ".")
	switch {
	case name == "cgroup.subtree_control":
		return k.enable(strings.Fields(text))
	case name == "cgroup.procs":
		return k.move(text, dir)
	case dir == k.root, !slices.Contains(k.enabled, controller), name == "memory.swap.max" && k.noSwap:
		return fs.ErrNotExist
	}
	k.limits[name] = text
	return nil
}

func (k *fakeKernel) enable(controllers []string) error {
	if !k.isMachine && slices.Contains(slices.Collect(maps.Values(k.in)), k.root) {
		return syscall.EBUSY
	}
	for _, c := range controllers {
		c = strings.TrimPrefix(c, "+")
		if !slices.Contains(k.controllers, c) {
			return fs.ErrNotExist
		}
		k.enabled = append(k.enabled, c)
	}
	return nil
}

func (k *fakeKernel) move(pid, dir string) error {
	if pid == "0" {
		return errors.New("0 is the process of the test")
	}
	if _, lives := k.in[pid]; !lives {
		return syscall.ESRCH
	}
	k.in[pid] = dir
	if len(k.starts) > 0 {
		k.in[k.starts[0]], k.starts = k.root, k.starts[1:]
	}
	return os.WriteFile(filepath.Join(k.root, "cgroup.procs"), []byte(strings.Join(k.processes(k.root), "\n")), 0o600)
}

// processes returns the processes of a group.
func (k *fakeKernel) processes(dir string) []string {
	var out []string
	for pid, in := range k.in {
		if in == dir {
			out = append(out, pid)
		}
	}
	return slices.Sorted(slices.Values(out))
}

func TestAGroupOfVersion2HasItsLimits(t *testing.T) {
	all := Limits{Processes: 400, Memory: 1 << 20, CPUs: 2}
	limits := map[string]string{"pids.max": "400", "memory.max": "1048576", "memory.swap.max": "0", "cpu.max": "200000"}
	three := []string{"cpu", "memory", "pids"}
	for name, tc := range map[string]unifiedCase{
		"on a machine, whose root may have processes": {
			kernel: fakeKernel{isMachine: true, controllers: three, in: map[string]string{"1": ""}}, limits: all, want: limits,
		},
		"in a container, whose processes are moved": {
			kernel: fakeKernel{controllers: three, in: map[string]string{"1": "", "7": ""}}, listed: "1\n7\n",
			limits: all, want: limits, moved: []string{"1", "7"},
		},
		"in a container where processes end and start meanwhile": {
			kernel: fakeKernel{controllers: three, in: map[string]string{"1": ""}, starts: []string{"8", "9"}}, listed: "1\n5\n",
			limits: all, want: limits, moved: []string{"1", "8", "9"},
		},
		"in a container with a process from outside, which cannot be moved": {
			kernel: fakeKernel{controllers: three, in: map[string]string{"1": "", "0": ""}}, listed: "0\n1\n",
			limits: all, moved: []string{"1"}, failure: "enabling +pids +memory +cpu: device or resource busy",
		},
		"with the controllers that it needs only": {
			kernel: fakeKernel{isMachine: true, controllers: []string{"memory"}}, limits: Limits{Memory: 1 << 20},
			want: map[string]string{"memory.max": "1048576", "memory.swap.max": "0"},
		},
		"without swap": {
			kernel: fakeKernel{isMachine: true, controllers: []string{"memory"}, noSwap: true}, limits: Limits{Memory: 1 << 20},
			want: map[string]string{"memory.max": "1048576"},
		},
		"on a machine without a controller": {
			kernel: fakeKernel{isMachine: true, controllers: []string{"hugetlb"}}, limits: all, failure: "enabling +pids +memory +cpu: file does not exist",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.check(t)
		})
	}
}

// A unifiedCase is a group of version 2, with its limits.
type unifiedCase struct {
	kernel  fakeKernel
	listed  string // in cgroup.procs of the root when it is read first
	limits  Limits
	want    map[string]string
	moved   []string
	failure string
}

func (tc unifiedCase) check(t *testing.T) {
	t.Helper()
	k := tc.kernel
	k.root, k.limits = t.TempDir(), map[string]string{}
	for pid := range k.in {
		k.in[pid] = k.root
	}
	for name, text := range map[string]string{"cgroup.controllers": "", "cgroup.procs": tc.listed} {
		if err := os.WriteFile(filepath.Join(k.root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g, err := hierarchy{root: k.root, write: k.write}.create(tc.limits)
	if text := message(err); text != tc.failure {
		t.Fatalf("the error is %q, not %q", text, tc.failure)
	}
	if !maps.Equal(k.limits, tc.want) {
		t.Errorf("its limits are %v, not %v", k.limits, tc.want)
	}
	if moved := k.processes(filepath.Join(k.root, "deckhand-tests")); !slices.Equal(moved, tc.moved) {
		t.Errorf("%v were moved into a leaf, not %v", moved, tc.moved)
	}
	if err != nil {
		return
	}
	if len(g.dirs) != 1 || filepath.Dir(g.dirs[0]) != k.root {
		t.Errorf("its folders are %v", g.dirs)
	}
	g.remove()
	if _, err := os.Stat(g.dirs[0]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it was not removed: %v", err)
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestAGroupOfVersion1HasAFolderForEachController(t *testing.T) {
	root := t.TempDir()
	for _, controller := range []string{"pids", "memory", "cpu"} {
		if err := os.Mkdir(filepath.Join(root, controller), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	write := func(file, text string) error {
		dir, name := filepath.Split(file)
		got[filepath.Base(filepath.Dir(filepath.Clean(dir)))+"/"+name] = text
		return nil
	}
	g, err := hierarchy{root: root, write: write}.create(Limits{Processes: 400, Memory: 1 << 20, CPUs: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"pids/pids.max": "400", "memory/memory.limit_in_bytes": "1048576", "cpu/cpu.cfs_quota_us": "100000"}
	if !maps.Equal(got, want) {
		t.Errorf("its limits are %v, not %v", got, want)
	}
	if len(g.dirs) != 3 {
		t.Errorf("its folders are %v", g.dirs)
	}
}

// The kernel of this machine has one of the two versions. Each process of the command waits for
// the one that it starts.
func TestACommandThatJoinsIsBounded(t *testing.T) {
	const nest = `f() { [ $1 = 0 ] || ( f $(($1 - 1)); echo $1 ); }; f `
	g := New(t, Limits{Processes: 3, Memory: 64 << 20, CPUs: 1})
	for depth, bounded := range map[string]bool{"2": false, "3": true} {
		args := g.Join("sh", "-c", nest+depth)
		out, _ := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput() // of the first shell only
		if text := string(out); strings.Contains(text, "fork") != bounded || !strings.HasSuffix(text, depth+"\n") {
			t.Errorf("%s processes below a shell: %s", depth, text)
		}
	}
}
