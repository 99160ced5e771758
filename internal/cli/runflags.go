package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	timeout time.Duration
	dryRun  string
}

// A description is what a command line says of a Run.
type description struct {
	target       string
	files        []string
	name, prompt string
	input        []string
	images       []string
	labels       []string
	limits       amounts
}

// bind adds the flags that every Run has.
func (o *description) bind(flags *pflag.FlagSet, ofFiles string) {
	flags.StringArrayVarP(&o.files, "filename", "f", nil, ofFiles)
	flags.StringVar(&o.name, "name", "", "Name of the Run; by default it is generated")
	flags.StringVarP(&o.prompt, "prompt", "p", "", "Prompt, as TEXT behind the Agent; - for standard input")
	flags.StringArrayVar(&o.images, "image", nil, fmt.Sprintf(imageUsage, "with the prompt"))
	flags.StringArrayVar(&o.input, "input", nil, "KEY=VALUE of the input. VALUE has the declared type; if that is not known, it is JSON, or else text")
	flags.StringArrayVar(&o.labels, "label", nil, "KEY=VALUE: a label of the Run")
	o.limits.bind(flags, "End the Run after this many steps (spec.limits.steps)", "End the Run after this many tokens, for example 500k (spec.limits.tokens)", "End the Run at this cost, for example 1USD (spec.limits.cost)")
}

func (o *clusterOptions) bind(flags *pflag.FlagSet) {
	flags.DurationVar(&o.timeout, "timeout", 0, "With --wait, stop watching after this time, for example 10m, with exit code 6. The Run continues. 0 watches until its end")
	flags.StringVar(&o.dryRun, "dry-run", dryRunNone, "client: print the Run that would be created. server: let the API server check it too, without creating it")
	flags.Lookup("dry-run").NoOptDefVal = dryRunClient
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

// checkValues returns an error if a flag of the Run has a value that it cannot have. It is called
// before anything is created or started.
func (o *description) checkValues() error {
	if _, err := o.labelsOf(nil); err != nil {
		return err
	}
	if _, err := o.limits.read(); err != nil {
		return err
	}
	if o.prompt == "-" && slices.Contains(o.files, "-") {
		return usageErrorf("-f - and -p - both read standard input: write one of them to a file")
	}
	_, err := pairsOf("--input", o.input)
	return err
}

// apply sets the labels and limits of a Run. What no flag names stays as it is.
func (o *description) apply(run *v1alpha1.Run) error {
	labels, err := o.labelsOf(run.Labels)
	if err != nil {
		return err
	}
	run.Labels = labels
	given, err := o.limits.read()
	if err != nil || !o.limits.areGiven() {
		return err
	}
	limits := &v1alpha1.Limits{}
	if run.Spec.Limits != nil {
		limits = run.Spec.Limits.DeepCopy()
	}
	limits.Steps = cmp.Or(given.Steps, limits.Steps)
	limits.Tokens = cmp.Or(given.Tokens, limits.Tokens)
	limits.Cost = cmp.Or(given.Cost, limits.Cost)
	run.Spec.Limits = limits
	return nil
}

// labelsOf returns labels with those of the flags added.
func (o *description) labelsOf(labels map[string]string) (map[string]string, error) {
	pairs, err := pairsOf("--label", o.labels)
	if err != nil || len(pairs) == 0 {
		return labels, err
	}
	out := map[string]string{}
	maps.Copy(out, labels)
	for _, p := range pairs {
		out[p.key] = p.value
	}
	return out, nil
}

// A pair is KEY=VALUE of a flag.
type pair struct{ key, value string }

// pairsOf returns the values of a flag that is given several times with KEY=VALUE. The same key twice
// is an error, because one of the values would be lost.
func pairsOf(flag string, values []string) ([]pair, error) {
	var out []pair
	for _, text := range values {
		key, value, found := strings.Cut(text, "=")
		if !found || key == "" {
			return nil, usageErrorf("%s %q: write KEY=VALUE", flag, text)
		}
		if slices.ContainsFunc(out, func(p pair) bool { return p.key == key }) {
			return nil, usageErrorf("%s %s is given twice: leave out one of them", flag, key)
		}
		out = append(out, pair{key, value})
	}
	return out, nil
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
