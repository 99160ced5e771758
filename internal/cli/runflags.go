package cli

import (
	"cmp"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// Values of --dry-run, as kubectl has them.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// clusterOptions are the flags of run that say what is created, and how long it is watched.
type clusterOptions struct {
	timeout      time.Duration
	dryRun       string
	labels       []string
	steps        int32
	tokens, cost string
}

func (o *clusterOptions) bind(flags *pflag.FlagSet) {
	flags.DurationVar(&o.timeout, "timeout", 0, "With --wait, stop watching after this time, for example 10m, with exit code 6. The Run continues. 0 watches until its end")
	flags.StringVar(&o.dryRun, "dry-run", dryRunNone, "client: print the Run that would be created. server: let the API server check it too, without creating it")
	flags.Lookup("dry-run").NoOptDefVal = dryRunClient
	flags.StringArrayVar(&o.labels, "label", nil, "KEY=VALUE: a label of the Run")
	flags.Int32Var(&o.steps, "steps", 0, "End the Run after this many steps (spec.limits.steps)")
	flags.StringVar(&o.tokens, "tokens", "", "End the Run after this many tokens, for example 500k (spec.limits.tokens)")
	flags.StringVar(&o.cost, "cost", "", "End the Run at this cost, for example 1USD (spec.limits.cost)")
}

// checkClusterFlags refuses what has no effect.
func (o *runOptions) checkClusterFlags() error {
	c := o.cluster
	switch {
	case c.dryRun != dryRunNone && c.dryRun != dryRunClient && c.dryRun != dryRunServer:
		return usageErrorf("--dry-run=%s: write --dry-run=client or --dry-run=server", c.dryRun)
	case c.dryRun != dryRunNone && o.wait:
		return usageErrorf("--dry-run creates no Run, so that --wait has none to show: leave out one of them")
	case c.timeout < 0:
		return usageErrorf("--timeout %s: write how long the Run is watched, for example 10m", c.timeout)
	case c.timeout > 0 && !o.wait:
		return usageErrorf("--timeout says how long --wait watches the Run: add --wait. To bound the Run itself, set spec.limits.deadline or spec.limits.duration")
	}
	return nil
}

// apply sets the labels and limits of a Run. What no flag names stays as it is.
func (o *clusterOptions) apply(run *v1alpha1.Run) error {
	if err := o.setLabels(run); err != nil || o.steps == 0 && o.tokens == "" && o.cost == "" {
		return err
	}
	amounts, err := newGrantOf(o.steps, o.tokens, o.cost)
	if err != nil {
		return err
	}
	limits := &v1alpha1.Limits{}
	if run.Spec.Limits != nil {
		limits = run.Spec.Limits.DeepCopy()
	}
	limits.Steps = cmp.Or(amounts.Steps, limits.Steps)
	limits.Tokens = cmp.Or(amounts.Tokens, limits.Tokens)
	limits.Cost = cmp.Or(amounts.Cost, limits.Cost)
	run.Spec.Limits = limits
	return nil
}

func (o *clusterOptions) setLabels(run *v1alpha1.Run) error {
	if len(o.labels) == 0 {
		return nil
	}
	labels := map[string]string{}
	maps.Copy(labels, run.Labels)
	for _, pair := range o.labels {
		key, value, found := strings.Cut(pair, "=")
		if !found || key == "" {
			return usageErrorf("--label %q: write KEY=VALUE", pair)
		}
		labels[key] = value
	}
	run.Labels = labels
	return nil
}

// created is what a user reads behind the name of a Run.
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
