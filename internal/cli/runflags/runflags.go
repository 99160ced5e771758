// Package runflags has the flags that describe a Run, and makes the Run of them. It checks the Run against the
// declarations of its Agent or Workflow.
package runflags

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/lint"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

// A Description has the flags that describe a Run.
type Description struct {
	Target       string
	Files        []string
	Name, Prompt string
	Input        []string
	images       []string
	Labels       []string
	limits       Amounts
}

// Bind adds the flags that every Run has, with the description of -f.
func (d *Description) Bind(flags *pflag.FlagSet, ofFiles string) {
	flags.StringArrayVarP(&d.Files, "filename", "f", nil, ofFiles)
	d.BindWork(flags, "Prompt, as TEXT behind the Agent; - for standard input")
}

// BindWork adds the flags that every Run has which no file describes, with the description of --prompt.
func (d *Description) BindWork(flags *pflag.FlagSet, ofPrompt string) {
	flags.StringVar(&d.Name, "name", "", "Name of the Run; by default it is generated")
	flags.StringVarP(&d.Prompt, "prompt", "p", "", ofPrompt)
	flags.StringArrayVar(&d.images, "image", nil, fmt.Sprintf(ImageUsage, "with the prompt"))
	flags.StringArrayVar(&d.Input, "input", nil, "KEY=VALUE of the input. VALUE has the declared type; if that is not known, it is JSON, or else text")
	d.limits.Bind(flags, "End the Run after this many steps (spec.limits.steps)", "End the Run after this many tokens, for example 500k (spec.limits.tokens)", "End the Run at this cost, for example 1USD (spec.limits.cost)")
}

// BindLabels adds the flag of labels, which a Run in a cluster has.
func (d *Description) BindLabels(flags *pflag.FlagSet) {
	flags.StringArrayVar(&d.Labels, "label", nil, "KEY=VALUE: a label of the Run")
}

// CheckValues returns an error if a flag of the Run has a value that it cannot have. It is called
// before anything is created or started.
func (d *Description) CheckValues() error {
	if _, err := d.labelsOf(nil); err != nil {
		return err
	}
	if _, err := d.limits.Read(); err != nil {
		return err
	}
	if d.Prompt == "-" && slices.Contains(d.Files, "-") {
		return exit.Usagef("-f - and -p - both read standard input: write one of them to a file")
	}
	_, err := PairsOf("--input", "KEY=VALUE", d.Input)
	return err
}

// apply sets the labels and limits of a Run that flags name.
func (d *Description) apply(run *v1alpha1.Run) error {
	labels, err := d.labelsOf(run.Labels)
	if err != nil {
		return err
	}
	run.Labels = labels
	given, err := d.limits.Read()
	if err != nil || !d.limits.AreGiven() {
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
func (d *Description) labelsOf(labels map[string]string) (map[string]string, error) {
	pairs, err := PairsOf("--label", "KEY=VALUE", d.Labels)
	if err != nil || len(pairs) == 0 {
		return labels, err
	}
	out := map[string]string{}
	maps.Copy(out, labels)
	for _, p := range pairs {
		out[p.Key] = p.Value
	}
	return out, nil
}

// A Pair is KEY=VALUE of a flag.
type Pair struct{ Key, Value string }

// PairsOf returns the values of a flag that is given several times in a form such as KEY=VALUE. The same
// key twice is an error, because one of the values would be lost.
func PairsOf(flag, form string, values []string) ([]Pair, error) {
	var out []Pair
	for _, text := range values {
		key, value, found := strings.Cut(text, "=")
		if !found || key == "" {
			return nil, exit.Usagef("%s %q: write %s", flag, text, form)
		}
		if slices.ContainsFunc(out, func(p Pair) bool { return p.Key == key }) {
			return nil, exit.Usagef("%s %s is given twice: leave out one of them", flag, key)
		}
		out = append(out, Pair{key, value})
	}
	return out, nil
}

// Overwrite sets the fields of a Run for which the command line has a flag.
func (d *Description) Overwrite(ctx context.Context, s *terminal.Streams, run *v1alpha1.Run, declared Declaration) error {
	if d.Name != "" {
		run.Name, run.GenerateName = d.Name, ""
	}
	if d.Prompt != "" {
		prompt, err := s.Argument(ctx, d.Prompt)
		if err != nil {
			return err
		}
		run.Spec.Prompt = prompt
	}
	if len(d.images) > 0 {
		run.Spec.Images = d.images
	}
	if err := d.apply(run); err != nil || len(d.Input) == 0 {
		return err
	}
	input, err := declared.merged(run.Spec.Input, d.Input)
	run.Spec.Input = input
	return err
}

// ImageUsage describes the flag --image. Its placeholder is for the text with which the images are shown, for example
// the prompt.
const ImageUsage = "An image or PDF below /workspace that the agent is shown %s, such as docs/chart.png; repeat it for more"

// SetArguments sets the Agent or Workflow, and the prompt, from the arguments of a command. Names of Agents have no
// spaces, so a single argument with a space is the prompt, and a flag such as -f names the Agent. The usage for the
// error message shows how to name an Agent before a prompt.
func (d *Description) SetArguments(args []string, byAnotherFlag bool, usage string) error {
	named := byAnotherFlag || len(d.Files) > 0
	switch {
	case len(args) == 0:
		return nil
	case len(args) == 1 && !strings.ContainsAny(args[0], " \t\n"):
		d.Target = args[0]
		return nil
	case len(args) == 1 && !named:
		return exit.Usagef("%q is a text: name its Agent too, as in %s", args[0], usage)
	case d.Prompt != "":
		return exit.Usagef("the prompt is given twice, as TEXT and with -p: leave out one of them")
	case len(args) == 2:
		d.Target = args[0]
	}
	d.Prompt = args[len(args)-1]
	return nil
}

// Arguments accepts at most a target and a prompt. The error for more arguments is about quotes, because a prompt of
// several words is often not quoted.
func Arguments(c *cobra.Command, args []string) error {
	if len(args) > 2 {
		return exit.Usagef("run takes one AGENT and one TEXT, and these are %d words. Write the text in quotes: %s %s 'TEXT'", len(args), c.CommandPath(), args[0])
	}
	return nil
}

// RunOfTarget returns a Run of the target that a command line names: AGENT, agent/NAME or workflow/NAME.
func RunOfTarget(target string) (*v1alpha1.Run, error) {
	run := &v1alpha1.Run{Spec: v1alpha1.RunSpec{Agent: target}}
	switch kind, name := CutKind(target); {
	case kind == "workflow":
		run.Spec = v1alpha1.RunSpec{Workflow: name}
	case kind == "agent":
		run.Spec = v1alpha1.RunSpec{Agent: name}
	case slices.Contains(lint.ManifestExtensions, filepath.Ext(target)):
		return nil, exit.Usagef("%s is a file: write -f %s", target, target)
	case kind != "":
		return nil, exit.Usagef("%q: write AGENT or workflow/NAME", target)
	}
	run.GenerateName = GeneratedName(run)
	return run, nil
}

// CutKind returns the kind, in lower case, and the name of an object as this program and kubectl print it:
// run/NAME, runs/NAME, run.deckhand.dev/NAME or runs.deckhand.dev/NAME. A text without a kind is a name. The
// kind is as it is written if it is none of ours.
func CutKind(text string) (kind, name string) {
	word, name, found := strings.Cut(text, "/")
	if !found {
		return "", text
	}
	kind = strings.TrimSuffix(strings.ToLower(word), "."+v1alpha1.GroupVersion.Group)
	for _, lower := range []string{"agent", "decision", "model", "run", "schedule", "toolset", "workflow"} {
		if kind == lower || kind == lower+"s" {
			return lower, name
		}
	}
	return word, name
}

// GeneratedName returns the prefix of a generated name. A dot is allowed in the name of an Agent, but not in the name
// of a Run.
func GeneratedName(run *v1alpha1.Run) string {
	const longest = 40
	name := strings.ReplaceAll(run.Spec.Agent+run.Spec.Workflow, ".", "-")
	return strings.TrimRight(name[:min(len(name), longest)], "-") + "-"
}

// Invalid returns the error of a flag that cannot be parsed, with what to write.
func Invalid(c *cobra.Command, err error) error {
	if wrong, is := errors.AsType[*pflag.InvalidValueError](err); is {
		return invalidValue(c, wrong)
	}
	similar := ""
	if unknown, is := errors.AsType[*pflag.NotExistError](err); is && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		similar = strings.Replace(template.Similar(unknown.GetSpecifiedName(), names), "mean ", "mean --", 1)
	}
	if similar != "" {
		return exit.Usagef("%v%s See: %s --help", err, similar, c.CommandPath())
	}
	return exit.Usagef("%v. See: %s --help", err, c.CommandPath())
}

// flagValues describe the values of flags, by type.
var flagValues = map[string]string{
	"int": "a whole number", "int32": "a whole number", "int64": "a whole number", "bool": "true or false, or the flag alone",
	"duration": "a time such as 90s, 10m or 1h30m",
}

// invalidValue returns the error of a value that a flag cannot have.
func invalidValue(c *cobra.Command, wrong *pflag.InvalidValueError) error {
	flag := wrong.GetFlag()
	want, known := flagValues[flag.Value.Type()]
	if !known {
		return exit.Usagef("--%s %s: %v. See: %s --help", flag.Name, quotedIfEmpty(wrong.GetValue()), errors.Unwrap(wrong), c.CommandPath())
	}
	return exit.Usagef("--%s %s: write %s. See: %s --help", flag.Name, quotedIfEmpty(wrong.GetValue()), want, c.CommandPath())
}
