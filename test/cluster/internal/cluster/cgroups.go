package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

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
