package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
)

type runOptions struct {
	description

	from    string
	wait    bool
	output  string
	logs    logsOptions
	local   localOptions
	cluster clusterOptions
}

func newRun(f *Factory) *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:   "run AGENT [TEXT] | workflow/NAME | -f FILE [TEXT] | --from schedule/NAME|run/NAME [TEXT]",
		Short: "Create a Run, and with --wait show it until it ends; with --local run an Agent on this machine",
		Example: "  kubectl deckhand run reviewer 'Review the README.'\n" +
			"  kubectl deckhand run workflow/release --input version=1.4.0\n" +
			"  kubectl deckhand run --from run/review-x7k2p\n" +
			"  kubectl deckhand run --local -f agent.yaml -C ~/project -p 'Fix the tests.' --model-key OPENAI_API_KEY",
		Args: runArguments,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.setArguments(args); err != nil {
				return err
			}
			if err := errors.Join(o.checkValues(), checkColor(o.logs.window.color)); err != nil {
				return err
			}
			if o.local.enabled {
				if err := o.checkForLocal(); err != nil {
					return err
				}
				return localRun{Streams: &f.Streams, o: o.description, flags: o.local, shown: o.logs.window.conversationFlags}.run(c.Context())
			}
			return runCreator{f, o}.create(c.Context())
		},
	}
	o.bind(c.Flags(), "File with the manifest of a Run; - for standard input. With --local files and directories with all manifests")
	c.Flags().StringVar(&o.from, "from", "", "Do again what a Run did, run/NAME, or what a Schedule does, schedule/NAME")
	c.Flags().BoolVarP(&o.wait, "wait", "w", false, "Print the conversation until the Run ends, and ask what it asks; the exit code says how it ended")
	c.Flags().StringVar(&o.logs.window.color, "color", colorAuto, "With --wait, color the conversation: auto, always or never")
	c.Flags().BoolVar(&o.logs.window.json, "json", false, "With --wait or --local, print the events as JSON lines")
	o.local.bind(c.Flags())
	o.cluster.bind(c.Flags())
	bindOutput(c, &o.output, outputName, outputJSON, outputYAML)
	return c
}

// runArguments accepts what runs and a prompt. A prompt of several words is often not quoted.
func runArguments(c *cobra.Command, args []string) error {
	if len(args) > 2 {
		return usageErrorf("run takes one AGENT and one TEXT, and these are %d words. Write the text in quotes: %s %s 'TEXT'", len(args), c.CommandPath(), args[0])
	}
	return nil
}

// setArguments sets what runs, and the prompt. No Agent has a blank in its name, so that a text alone
// is a prompt for what a flag names.
func (o *runOptions) setArguments(args []string) error {
	named := len(o.files) > 0 || o.from != ""
	switch {
	case len(args) == 0:
		return nil
	case len(args) == 1 && !strings.ContainsAny(args[0], " \t\n"):
		o.target = args[0]
		return nil
	case len(args) == 1 && !named:
		return usageErrorf("%q is a text: name the Agent before it, as in kubectl deckhand run AGENT TEXT", args[0])
	case o.prompt != "":
		return usageErrorf("the prompt is given twice, as TEXT and with -p: leave out one of them")
	case len(args) == 2:
		o.target = args[0]
	}
	o.prompt = args[len(args)-1]
	return nil
}

// checkForLocal refuses flags that only a cluster has an effect for.
func (o *runOptions) checkForLocal() error {
	switch {
	case o.from != "":
		return usageErrorf("--from names something in a cluster: with --local, name files with -f")
	case o.cluster.timeout != 0 || o.cluster.dryRun != "" && o.cluster.dryRun != dryRunNone || len(o.labels) > 0:
		return usageErrorf("--timeout, --dry-run and --label are for Runs in a cluster: leave them out, or leave out --local")
	case o.output != "":
		return usageErrorf("with --local there is no Run to print with -o: print the events with --json")
	}
	return nil
}

// checkForCluster refuses flags that only --local has, and a command line that does not say what to
// run.
func (o *runOptions) checkForCluster() error {
	l := o.local
	switch {
	case l.dir != "." || len(l.endpoints) > 0 || len(l.secrets) > 0 || l.modelKey != "" || l.unconfined:
		return usageErrorf("-C, --endpoint, --secret, --model-key and --unconfined are for --local: add it, or leave them out")
	case len(o.files) > 1:
		return usageErrorf("-f names one file with a Run: apply other manifests with kubectl apply -f, or add --local")
	case o.logs.window.json && !o.wait:
		return usageErrorf("--json prints the events of a Run that is watched: add --wait, or --local")
	}
	if err := o.checkClusterFlags(); err != nil {
		return err
	}
	return o.checkSource()
}

// checkSource refuses a command line that does not say once what to run.
func (o *runOptions) checkSource() error {
	if named := cmp.Or(strings.Join(o.files, ""), o.from); named != "" && o.target != "" && o.prompt == "" {
		return usageErrorf("%s says what to run, and %s does, too: leave out one of them. If %s is the prompt, write -p %s", named, o.target, o.target, o.target)
	}
	if count(o.target, strings.Join(o.files, ""), o.from) != 1 {
		return usageErrorf("say what to run, once: AGENT, workflow/NAME, -f FILE, --from schedule/NAME or --from run/NAME")
	}
	return nil
}

// A runCreator creates the Run that a command line describes.
type runCreator struct {
	*Factory
	o runOptions
}

func (r runCreator) create(ctx context.Context) error {
	o := r.o
	if err := o.checkForCluster(); err != nil {
		return err
	}
	c, err := r.Client()
	if err != nil {
		return err
	}
	run, err := r.described(ctx, c)
	if err != nil {
		return err
	}
	if o.wait {
		if err := checkRightsToWatch(ctx, c, run.Namespace); err != nil {
			return err
		}
	}
	if o.cluster.dryRun != dryRunClient {
		if err := createRun(ctx, c, run, o.cluster.createOptions()...); err != nil {
			return err
		}
	}
	if o.wait {
		return r.await(ctx, run)
	}
	return r.printRun(run, cmp.Or(o.cluster.created(), "created"))
}

func createRun(ctx context.Context, c client.Client, run *v1alpha1.Run, options ...client.CreateOption) error {
	err := c.Create(ctx, run, options...)
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("run %s exists in namespace %s, and a Run is done once: choose another name with --name", run.Name, run.Namespace)
	}
	return err
}

// described returns the Run that the command line describes. What the operator would refuse is
// refused.
func (r runCreator) described(ctx context.Context, c client.Client) (*v1alpha1.Run, error) {
	run, err := r.template(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := r.setNamespace(run); err != nil {
		return nil, err
	}
	declared, err := r.declaration(ctx, c, run)
	if err != nil {
		return nil, err
	}
	if err := r.o.overwrite(ctx, &r.Streams, run, declared); err != nil {
		return nil, err
	}
	if err := declared.check(run); err != nil {
		return nil, err
	}
	if declared.waits != "" {
		fmt.Fprintln(r.Err, untrusted.Line(declared.waits, 1024))
	}
	return run, nil
}

// checkRightsToWatch returns an error if the user may create the Run and not read its log: it would
// work, and cost, while the command ends with an error.
func checkRightsToWatch(ctx context.Context, c client.Client, namespace string) error {
	missing, err := missingRights(ctx, c, namespace, "list pods", "get pods/log")
	if err != nil || len(missing) == 0 {
		return err
	}
	return fmt.Errorf("no Run was created: you may not %s in namespace %s, which --wait needs. Ask an administrator to bind the ClusterRole deckhand-user to you in this namespace, or leave out --wait", strings.Join(missing, ", "), namespace)
}

// printRun prints a Run as -o says.
func (r runCreator) printRun(run *v1alpha1.Run, what string) error {
	switch r.o.output {
	case outputJSON, outputYAML:
		run.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Run"))
		return printObject(r.Out, r.o.output, run)
	case outputName:
		fmt.Fprintln(r.Out, "run.deckhand.dev/"+cmp.Or(run.Name, run.GenerateName))
	default:
		fmt.Fprintf(r.Out, "run.deckhand.dev/%s %s\n", cmp.Or(run.Name, run.GenerateName), what)
	}
	return nil
}

// template returns the Run before --prompt, --input and --name.
func (r runCreator) template(ctx context.Context, c client.Client) (*v1alpha1.Run, error) {
	o := r.o
	if len(o.files) > 0 {
		return r.ofFile(ctx, o.files[0])
	}
	kind, name := cutKind(o.from)
	switch {
	case o.target != "":
		return runOfTarget(o.target)
	case kind == "run":
		old, err := r.findRun(ctx, c, name)
		if err != nil {
			return nil, err
		}
		run := &v1alpha1.Run{Spec: old.Spec}
		run.Spec.DesiredState, run.Spec.User = "", "" // it works for who creates it
		run.GenerateName = generated(run)
		return run, nil
	case kind == "schedule":
		var schedule v1alpha1.Schedule
		if err := r.find(ctx, c, "Schedule", name, &schedule); err != nil {
			return nil, err
		}
		t := schedule.Spec.RunTemplate
		run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Labels: t.Labels}, Spec: t.Spec}
		run.Spec.User = "" // as above
		run.GenerateName = generated(run)
		return run, nil
	}
	return nil, usageErrorf("--from %q: write run/NAME or schedule/NAME", o.from)
}

func runOfTarget(target string) (*v1alpha1.Run, error) {
	run := &v1alpha1.Run{Spec: v1alpha1.RunSpec{Agent: target}}
	switch kind, name := cutKind(target); {
	case kind == "workflow":
		run.Spec = v1alpha1.RunSpec{Workflow: name}
	case kind == "agent":
		run.Spec = v1alpha1.RunSpec{Agent: name}
	case slices.Contains(manifestExtensions, filepath.Ext(target)):
		return nil, usageErrorf("%s is a file: write -f %s", target, target)
	case kind != "":
		return nil, usageErrorf("%q: write AGENT or workflow/NAME", target)
	}
	run.GenerateName = generated(run)
	return run, nil
}

// overwrite sets what the command line says about a Run.
func (o *description) overwrite(ctx context.Context, s *Streams, run *v1alpha1.Run, declared declaration) error {
	if o.name != "" {
		run.Name, run.GenerateName = o.name, ""
	}
	if o.prompt != "" {
		prompt, err := s.argument(ctx, o.prompt)
		if err != nil {
			return err
		}
		run.Spec.Prompt = prompt
	}
	if len(o.images) > 0 {
		run.Spec.Images = o.images
	}
	if err := o.apply(run); err != nil || len(o.input) == 0 {
		return err
	}
	input, err := declared.merged(run.Spec.Input, o.input)
	run.Spec.Input = input
	return err
}

// generated is what a generated name begins with. A dot is allowed in the name of an Agent, but
// not in that of a Run.
func generated(run *v1alpha1.Run) string {
	const longest = 40
	name := strings.ReplaceAll(run.Spec.Agent+run.Spec.Workflow, ".", "-")
	return strings.TrimRight(name[:min(len(name), longest)], "-") + "-"
}

func count(texts ...string) int {
	n := 0
	for _, text := range texts {
		if text != "" {
			n++
		}
	}
	return n
}
