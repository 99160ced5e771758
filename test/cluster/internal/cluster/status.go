package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"github.com/deckhand-dev/deckhand/test/cluster/internal/proc"
)

// ErrNotUp is returned by Status when part of the cluster is missing.
var ErrNotUp = errors.New("the cluster is not up; run `cluster up`")

// Status prints the state of each component.
func (s Site) Status(ctx context.Context, out io.Writer) error {
	healthy := true
	for _, c := range s.components().all() {
		r, err := proc.Read(s.pidFile(c.name))
		if err != nil {
			return err
		}
		state := "healthy"
		if !r.Alive() {
			state = "not running"
		} else if err := c.healthy(ctx); err != nil {
			state = err.Error()
		}
		healthy = healthy && state == "healthy"
		fmt.Fprintf(out, "%-24s %7d  %s\n", c.name, r.PID, state)
	}
	if !healthy {
		return ErrNotUp
	}
	fmt.Fprintln(out)
	for _, args := range [][]string{{"get", "nodes"}, {"get", "pods", "--all-namespaces"}} {
		cmd := exec.CommandContext(ctx, s.Kubectl(), append([]string{"--kubeconfig", s.Kubeconfig()}, args...)...)
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("asking the API server: %w", err)
		}
	}
	fmt.Fprintf(out, "\nexport KUBECONFIG=%s\nkubectl: %s\n", s.Kubeconfig(), s.Kubectl())
	return nil
}
