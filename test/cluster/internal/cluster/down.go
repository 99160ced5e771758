package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/test/cluster/internal/proc"
)

// Down takes the cluster away: processes, mounts, network, folder.
func (s Site) Down(ctx context.Context) error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return s.clear(ctx)
}

// clear removes all of the cluster. It may be called when nothing is left, or when an earlier call was interrupted. It
// removes the folder last, because the folder has the list of everything else.
func (s Site) clear(ctx context.Context) error {
	if err := s.killAll(ctx); err != nil {
		return fmt.Errorf("stopping the cluster: %w", err)
	}
	if err := s.host().removeCgroups(ctx); err != nil {
		return err
	}
	s.host().removeStrays(ctx)
	if err := s.host().unmount(); err != nil {
		return err
	}
	for _, n := range s.nodes() {
		if err := n.namespace().Delete(ctx); err != nil {
			return err
		}
	}
	if !s.folder().claimed() {
		return nil
	}
	if err := s.host().restoreSysctls(); err != nil {
		return err
	}
	return s.folder().remove()
}

// remove removes the folder, and its marker last, so that an interrupted removal can be repeated.
func (f folder) remove() error {
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		return fmt.Errorf("removing folder: %w", err)
	}
	for _, e := range entries {
		if e.Name() == marker {
			continue
		}
		if err := os.RemoveAll(f.Path(e.Name())); err != nil {
			return fmt.Errorf("removing folder: %w", err)
		}
	}
	if err := os.RemoveAll(f.Dir); err != nil {
		return fmt.Errorf("removing folder: %w", err)
	}
	return nil
}

// killAll ends the components first, so that none of them starts a container again, then the containers and their
// shims.
func (s Site) killAll(ctx context.Context) error {
	var components []proc.Identity
	for _, c := range s.components().all() {
		r, err := proc.Read(s.pidFile(c.name))
		if err != nil {
			return err
		}
		components = append(components, r.Identity)
	}
	if err := proc.KillAll(ctx, components); err != nil {
		return err
	}
	shims, err := proc.Find(s.isShim)
	if err != nil {
		return err
	}
	pods, err := s.host().podProcesses()
	if err != nil {
		return err
	}
	return proc.KillAll(ctx, slices.Concat(pods, shims))
}

// isShim recognizes the parents of this cluster's containers: each names the
// containerd it reports to.
func (s Site) isShim(args []string) bool {
	at := slices.Index(args, "-address")
	return strings.HasPrefix(filepath.Base(args[0]), "containerd-shim") && at > 0 && at+1 < len(args) &&
		slices.ContainsFunc(s.nodes(), func(n node) bool { return args[at+1] == n.containerd() })
}
