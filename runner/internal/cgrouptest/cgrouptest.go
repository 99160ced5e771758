//go:build linux

package cgrouptest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// mountPoint is where the control groups of a machine are mounted.
const mountPoint = "/sys/fs/cgroup"

// period is the time in microseconds over which the kernel counts CPU time.
const period = 100_000

// Limits bound the processes of a group. Zero: no limit.
type Limits struct {
	Processes int
	// Memory is in bytes.
	Memory int64
	CPUs   int
}

// A Group is a control group or, in version 1, one for each controller.
type Group struct {
	dirs []string
}

// New creates a group, which is removed at the end of the test, after its processes have ended.
// It skips the test if this machine allows no group.
func New(t testing.TB, l Limits) Group {
	t.Helper()
	g, err := hierarchy{root: mountPoint, write: write}.create(l)
	t.Cleanup(g.remove)
	if err != nil {
		t.Skipf("processes and memory cannot be bounded on this machine: %v", err)
	}
	return g
}

// Join returns the command line that runs another one in the group.
func (g Group) Join(args ...string) []string {
	const script = `for dir in $0; do echo $$ >"$dir/cgroup.procs" || exit 1; done; exec "$@"`
	return append([]string{"sh", "-c", script, strings.Join(g.dirs, " ")}, args...)
}

// remove ignores errors: a group that a process still uses stays until the machine restarts.
func (g Group) remove() {
	for _, dir := range g.dirs {
		_ = os.Remove(dir)
	}
}

// A hierarchy is a hierarchy of control groups, by its version.
type hierarchy struct {
	root  string
	write func(file, text string) error
}

// write writes to a file of the kernel, which has to exist.
func write(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// create returns the groups that it could create even if it fails.
func (h hierarchy) create(l Limits) (Group, error) {
	if _, err := os.Stat(filepath.Join(h.root, "cgroup.controllers")); err == nil {
		return h.createUnified(l)
	}
	return h.createSeparate(l)
}

// A setting is a value of one file of a group.
type setting struct {
	controller, file, value string
	optional                bool // the kernel may have no such file
}

// createSeparate creates a group of version 1 for each controller.
func (h hierarchy) createSeparate(l Limits) (Group, error) {
	var g Group
	for _, s := range []setting{
		{controller: "pids", file: "pids.max", value: text(int64(l.Processes))},
		{controller: "memory", file: "memory.limit_in_bytes", value: text(l.Memory)},
		{controller: "cpu", file: "cpu.cfs_quota_us", value: text(int64(l.CPUs) * period)},
	} {
		if s.value == "" {
			continue
		}
		dir, err := child(filepath.Join(h.root, s.controller))
		if err != nil {
			return g, err
		}
		g.dirs = append(g.dirs, dir)
		if err := h.write(filepath.Join(dir, s.file), s.value); err != nil {
			return g, fmt.Errorf("setting %s: %w", s.file, err)
		}
	}
	return g, nil
}

// createUnified creates a group of version 2 below the root of the hierarchy. A child of
// the group of this process would have its limits too, but would need all processes of that
// group to be moved on every machine.
func (h hierarchy) createUnified(l Limits) (Group, error) {
	var settings []setting
	var controllers []string
	for _, s := range []setting{
		{controller: "pids", file: "pids.max", value: text(int64(l.Processes))},
		{controller: "memory", file: "memory.max", value: text(l.Memory)},
		{controller: "cpu", file: "cpu.max", value: text(int64(l.CPUs) * period)},
	} {
		if s.value == "" {
			continue
		}
		settings, controllers = append(settings, s), append(controllers, s.controller)
	}
	if l.Memory > 0 { // a limit of memory would only move its pages to the disk
		settings = append(settings, setting{file: "memory.swap.max", value: "0", optional: true})
	}
	if err := h.delegate(controllers); err != nil {
		return Group{}, err
	}
	dir, err := child(h.root)
	if err != nil {
		return Group{}, err
	}
	g := Group{dirs: []string{dir}}
	for _, s := range settings {
		err := h.write(filepath.Join(dir, s.file), s.value)
		if err != nil && (!s.optional || !errors.Is(err, fs.ErrNotExist)) {
			return g, fmt.Errorf("setting %s: %w", s.file, err)
		}
	}
	return g, nil
}

// text returns a limit in the form for the kernel; empty if there is none.
func text(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// child creates a group. Every user can read its limits, as in a container.
func child(parent string) (string, error) {
	dir, err := os.MkdirTemp(parent, "deckhand-test-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// maxMoves is how often processes are moved, because each may start another meanwhile.
const maxMoves = 20

// delegate enables controllers for the children of the root. In a container the root is not the machine's root group,
// and the kernel refuses while processes are in it: they are moved into a leaf. See
// https://docs.kernel.org/admin-guide/cgroup-v2.html#no-internal-process-constraint.
func (h hierarchy) delegate(controllers []string) error {
	want := "+" + strings.Join(controllers, " +")
	var err error
	for range maxMoves {
		err = h.write(filepath.Join(h.root, "cgroup.subtree_control"), want)
		if !errors.Is(err, syscall.EBUSY) {
			break
		}
		if err := h.vacate(); err != nil {
			return fmt.Errorf("moving processes into a leaf: %w", err)
		}
	}
	if err != nil {
		return fmt.Errorf("enabling %s: %w", want, err)
	}
	return nil
}

// vacate moves the processes of the root into a leaf, where they stay.
func (h hierarchy) vacate() error {
	leaf := filepath.Join(h.root, "deckhand-tests")
	if err := os.MkdirAll(leaf, 0o755); err != nil {
		return err
	}
	processes, err := os.ReadFile(filepath.Join(h.root, "cgroup.procs"))
	if err != nil {
		return err
	}
	for pid := range strings.FieldsSeq(string(processes)) {
		if pid == "0" { // it is outside of this PID namespace, and 0 would be this process
			continue
		}
		err := h.write(filepath.Join(leaf, "cgroup.procs"), pid)
		if err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}
