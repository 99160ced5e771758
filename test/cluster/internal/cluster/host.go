package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deckhand-dev/deckhand/test/cluster/internal/proc"
)

// A host is the machine of a Site, with what the cluster changes outside of its folder.
type host struct{ Site }

func (s Site) host() host { return host{s} }

// cgroups returns the folders of the nodes' own cgroups, one of each node in each hierarchy.
// Only pods live there: the components stay where they were started.
func (h host) cgroups() ([]string, error) {
	mounts, err := readMounts()
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, m := range mounts {
		if m.fs == "cgroup" || m.fs == "cgroup2" {
			for _, n := range h.nodes() {
				dirs = append(dirs, filepath.Join(m.point, n.name()))
			}
		}
	}
	if len(dirs) == 0 {
		return nil, errors.New("no cgroups are mounted")
	}
	return dirs, nil
}

// makeCgroups makes the cgroups without which the kubelet does not start.
func (h host) makeCgroups() error {
	dirs, err := h.cgroups()
	if err != nil {
		return err
	}
	for _, d := range dirs {
		delegate(filepath.Dir(d))
		if err := os.MkdirAll(d, 0o755); err != nil {
			return fmt.Errorf("making cgroup: %w", err)
		}
	}
	return nil
}

// delegate lets the children of a cgroup (version 2) have its controllers. A controller that the kernel refuses is not
// an error here: the kubelet names it if it needs it.
func delegate(dir string) {
	controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return // version 1: children have them anyway
	}
	for c := range strings.FieldsSeq(string(controllers)) {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0o644)
	}
}

// podProcesses lists every process that runs in a pod.
func (h host) podProcesses() ([]proc.Identity, error) {
	var found []proc.Identity
	err := h.eachCgroup(func(dir string) error {
		members, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			return nil //nolint:nilerr // the cgroup has just gone, and its processes before it
		}
		for field := range strings.FieldsSeq(string(members)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				continue
			}
			if i, err := proc.Of(pid); err == nil && !slices.Contains(found, i) {
				found = append(found, i)
			}
		}
		return nil
	})
	return found, err
}

// removeCgroups removes the cluster's cgroups, innermost first. The kernel refuses to remove a cgroup for a moment
// after its last process has ended.
func (h host) removeCgroups(ctx context.Context) error {
	var dirs []string
	if err := h.eachCgroup(func(dir string) error { dirs = append(dirs, dir); return nil }); err != nil {
		return err
	}
	slices.Reverse(dirs)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, d := range dirs {
		err := proc.Until(ctx, func() error { return removeFile(d) })
		if err != nil {
			return fmt.Errorf("removing cgroup: %w", err)
		}
	}
	return nil
}

// eachCgroup visits the cluster's cgroups, outermost first.
func (h host) eachCgroup(visit func(dir string) error) error {
	roots, err := h.cgroups()
	if err != nil {
		return err
	}
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || (err == nil && !d.IsDir()) {
				return nil
			}
			if err != nil {
				return err
			}
			return visit(path)
		})
		if err != nil {
			return fmt.Errorf("walking cgroups: %w", err)
		}
	}
	return nil
}

// A mount is one line of the kernel's list.
type mount struct {
	point string
	fs    string // type of file system
}

func readMounts() ([]mount, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("listing mounts: %w", err)
	}
	return parseMounts(string(data)), nil
}

// parseMounts reads the fifth field and, after a lone dash, the type.
func parseMounts(info string) []mount {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var mounts []mount
	for line := range strings.Lines(info) {
		before, after, ok := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if ok && len(fields) > 4 && len(kind) > 0 {
			mounts = append(mounts, mount{point: unescape.Replace(fields[4]), fs: kind[0]})
		}
	}
	return mounts
}

// shareMounts makes the cluster's folder a shared mount, so that containers see mounts that are added and removed below
// it. The rest of the machine's mounts stay as they are.
func (h host) shareMounts() error {
	mounts, err := readMounts()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(mounts, func(m mount) bool { return m.point == h.Dir }) {
		return nil
	}
	if err := unix.Mount(h.Dir, h.Dir, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting %s on itself: %w", h.Dir, err)
	}
	if err := unix.Mount("", h.Dir, "", unix.MS_SHARED|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("sharing mounts of %s: %w", h.Dir, err)
	}
	return nil
}

// unmount undoes every mount in the cluster's folder, last first, and fails if one remains, because removing the folder
// would then remove the files of that mount.
func (h host) unmount() error {
	for range 3 { // a mount may hide another
		mounts, err := readMounts()
		if err != nil {
			return err
		}
		left := 0
		for _, m := range slices.Backward(mounts) {
			if m.point == h.Dir || strings.HasPrefix(m.point, h.Dir+"/") {
				left++
				_ = unix.Unmount(m.point, unix.MNT_DETACH) // the next look tells
			}
		}
		if left == 0 {
			return nil
		}
	}
	return fmt.Errorf("mounts remain in %s", h.Dir)
}

// kubeletSysctls are settings of the whole machine that a kubelet changes.
var kubeletSysctls = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic",
	"kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// saveSysctls stores the settings that the kubelet will change, unless they are stored already.
func (h host) saveSysctls() error {
	if _, err := os.Stat(h.Path("sysctls.json")); err == nil {
		return nil
	}
	saved := map[string]string{}
	for _, name := range kubeletSysctls {
		if value, err := os.ReadFile("/proc/sys/" + name); err == nil {
			saved[name] = strings.TrimSpace(string(value))
		}
	}
	data, err := json.Marshal(saved)
	if err != nil {
		return fmt.Errorf("encoding sysctls: %w", err)
	}
	return write(h.Path("sysctls.json"), data, 0o644)
}

// restoreSysctls restores the stored settings.
func (h host) restoreSysctls() error {
	data, err := os.ReadFile(h.Path("sysctls.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading saved sysctls: %w", err)
	}
	var saved map[string]string
	if err := json.Unmarshal(data, &saved); err != nil {
		return fmt.Errorf("reading saved sysctls: %w", err)
	}
	var errs []error
	for name, value := range saved {
		errs = append(errs, os.WriteFile("/proc/sys/"+name, []byte(value), 0o644))
	}
	return errors.Join(errs...)
}

// removeStrays removes the files that containerd, CNI and the kubelet write to paths that cannot be configured. A file
// that cannot be removed does no harm.
func (h host) removeStrays(ctx context.Context) {
	for _, f := range h.strays(ctx) {
		_ = os.Remove(f)
	}
	// Folders that others use too are not empty, and stay.
	for _, dir := range []string{
		"/run/containerd/s", "/run/containerd", "/var/log/containers",
		"/var/lib/cni/results", "/var/lib/cni", "/var/lib/kubelet/device-plugins", "/var/lib/kubelet",
	} {
		_ = os.Remove(dir)
	}
}

// strays lists the files: the sockets of shims, the links to logs of pods, the state of CNI, and the kubelet's socket
// for devices.
func (h host) strays(ctx context.Context) []string {
	var found []string
	for _, address := range glob(h.Path("run", "containerd*", "io.containerd.runtime.v2.task", "*", "*", "address")) {
		if data, err := os.ReadFile(address); err == nil {
			found = append(found, strings.TrimPrefix(strings.TrimSpace(string(data)), "unix://"))
		}
	}
	for _, l := range glob("/var/log/containers/*") {
		if target, err := os.Readlink(l); err == nil && strings.HasPrefix(target, h.Dir+"/") {
			found = append(found, l)
		}
	}
	for _, result := range glob("/var/lib/cni/results/*") {
		if data, err := os.ReadFile(result); err == nil && bytes.Contains(data, []byte(h.Dir+"/")) {
			found = append(found, result)
		}
	}
	const devices = "/var/lib/kubelet/device-plugins/"
	if socketOpen(devices+"kubelet.sock")(ctx) != nil { // no other kubelet serves it
		found = append(found, devices+"kubelet.sock", devices+"kubelet_internal_checkpoint", devices+"DEPRECATION")
	}
	return found
}

func glob(pattern string) []string {
	found, _ := filepath.Glob(pattern) // the only error is a bad pattern
	return found
}
