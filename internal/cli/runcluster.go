package cli

import (
	"errors"
	"time"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
)

// Values of --dry-run, as kubectl has them.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// clusterOptions are the flags of run for creating and watching a Run in a cluster.
type clusterOptions struct {
	timeout time.Duration
	dryRun  string
}

func (o *clusterOptions) bind(flags *pflag.FlagSet) {
	flags.DurationVar(&o.timeout, "timeout", 0, "With --wait, stop watching after this time, for example 10m, with exit code 6. The Run continues. 0 watches until its end")
	flags.StringVar(&o.dryRun, "dry-run", dryRunNone, "client: print the Run that would be created. server: let the API server check it too, without creating it")
	flags.Lookup("dry-run").NoOptDefVal = dryRunClient
}

// checkClusterFlags refuses flags without an effect.
func (o *runOptions) checkClusterFlags() error {
	c := o.cluster
	switch {
	case c.dryRun != dryRunNone && c.dryRun != dryRunClient && c.dryRun != dryRunServer:
		return exit.Usagef("--dry-run=%s: write --dry-run=client or --dry-run=server", c.dryRun)
	case c.dryRun != dryRunNone && o.wait:
		return exit.Usagef("--dry-run creates no Run, so that --wait has none to show: leave out one of them")
	case c.timeout < 0:
		return exit.Usagef("--timeout %s: write how long the Run is watched, for example 10m", c.timeout)
	case c.timeout > 0 && !o.wait:
		return exit.Usagef("--timeout says how long --wait watches the Run: add --wait. To bound the Run itself, set spec.limits.deadline or spec.limits.duration")
	}
	return nil
}

// created returns the text after the name of a created Run.
func (o *clusterOptions) created() string {
	return map[string]string{dryRunClient: "created (dry run)", dryRunServer: "created (server dry run)"}[o.dryRun]
}

func (o *clusterOptions) createOptions() []client.CreateOption {
	if o.dryRun == dryRunServer {
		return []client.CreateOption{client.DryRunAll}
	}
	return nil
}

// errNeedsUser ends the watching of a Run that asks something, because there is no terminal.
var errNeedsUser = errors.New("the Run asks a user, and there is no terminal")
