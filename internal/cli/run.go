package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/local"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/cli/runflags"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
)

type runOptions struct {
	runflags.Description

	from    string
	wait    bool
	output  string
	logs    logsOptions
	local   local.Flags
	cluster clusterOptions
	isLocal bool
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
		Args: runflags.Arguments,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.SetArguments(args, o.from != "", "kubectl deckhand run AGENT TEXT"); err != nil {
				return err
			}
			if err := errors.Join(o.CheckValues(), terminal.CheckColor(o.logs.window.Color)); err != nil {
				return err
			}
			if o.isLocal {
				if err := o.checkForLocal(); err != nil {
					return err
				}
				return local.Run{
					Streams: &f.Streams, Program: c.Root().CommandPath(), Description: o.Description, Flags: o.local, Shown: o.logs.window.ConversationFlags,
				}.Do(c.Context())
			}
			return runCreator{f, o}.create(c.Context())
		},
	}
	o.Bind(c.Flags(), "File with the manifest of a Run; - for standard input. With --local files and directories with all manifests")
	c.Flags().StringVar(&o.from, "from", "", "Do again what a Run did, run/NAME, or what a Schedule does, schedule/NAME")
	c.Flags().BoolVarP(&o.wait, "wait", "w", false, "Print the conversation until the Run ends, and ask what it asks; the exit code says how it ended")
	o.logs.window.Bind(c.Flags(), "With --wait, color the conversation", "With --wait or --local, print the events as JSON lines")
	c.Flags().BoolVar(&o.isLocal, "local", false, "Run an Agent of the files on this machine, without a cluster, in the directory of -C")
	o.local.Bind(c.Flags(), "With --local, ")
	o.BindLabels(c.Flags())
	o.cluster.bind(c.Flags())
	bindOutput(c, &o.output, outputName, outputJSON, outputYAML)
	return c
}

// checkForLocal refuses flags that only a cluster has an effect for.
func (o *runOptions) checkForLocal() error {
	switch {
	case o.from != "":
		return exit.Usagef("--from names something in a cluster: with --local, name files with -f")
	case o.cluster.timeout != 0 || o.cluster.dryRun != "" && o.cluster.dryRun != dryRunNone || len(o.Labels) > 0:
		return exit.Usagef("--timeout, --dry-run and --label are for Runs in a cluster: leave them out, or leave out --local")
	case o.output != "":
		return exit.Usagef("with --local there is no Run to print with -o: print the events with --json")
	}
	return nil
}

// checkForCluster refuses flags that need --local, and a command line without an Agent or a Workflow.
func (o *runOptions) checkForCluster() error {
	switch {
	case o.local.AreGiven():
		return exit.Usagef("-C, --endpoint, --secret, --model-key, --unconfined, --continue and --step are for --local: add it, or leave them out")
	case len(o.Files) > 1:
		return exit.Usagef("-f names one file with a Run: apply other manifests with kubectl apply -f, or add --local")
	case o.logs.window.JSON && !o.wait:
		return exit.Usagef("--json prints the events of a Run that is watched: add --wait, or --local")
	}
	if err := o.checkClusterFlags(); err != nil {
		return err
	}
	return o.checkSource()
}

// checkSource refuses a command line that does not name the source of the Run exactly once.
func (o *runOptions) checkSource() error {
	if named := cmp.Or(strings.Join(o.Files, ""), o.from); named != "" && o.Target != "" && o.Prompt == "" {
		return exit.Usagef("%s says what to run, and %s does, too: leave out one of them. If %s is the prompt, write -p %s", named, o.Target, o.Target, o.Target)
	}
	if count(o.Target, strings.Join(o.Files, ""), o.from) != 1 {
		return exit.Usagef("say what to run, once: AGENT, workflow/NAME, -f FILE, --from schedule/NAME or --from run/NAME")
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
	return r.createDescribed(ctx, c, run)
}

// createDescribed creates a Run, and shows it until its end or prints its name.
func (r runCreator) createDescribed(ctx context.Context, c client.Client, run *v1alpha1.Run) error {
	o := r.o
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

// described returns the Run that the command line describes. It refuses what the operator would refuse.
func (r runCreator) described(ctx context.Context, c client.Client) (*v1alpha1.Run, error) {
	run, err := r.template(ctx, c)
	if err != nil {
		return nil, err
	}
	return run, r.complete(ctx, c, run)
}

// complete sets what the flags say in a Run. It refuses what the operator would refuse, and says what a user should
// know before the work.
func (r runCreator) complete(ctx context.Context, c client.Client, run *v1alpha1.Run) error {
	if err := r.setNamespace(run); err != nil {
		return err
	}
	declared, err := r.declaration(ctx, c, run)
	if err != nil {
		return err
	}
	if err := r.o.Overwrite(ctx, &r.Streams, run, declared); err != nil {
		return err
	}
	if err := declared.Check(run); err != nil {
		return err
	}
	if declared.Waits != "" {
		fmt.Fprintln(r.Err, untrusted.Line(declared.Waits, 1024))
	}
	if declared.Ends != "" && r.o.wait {
		fmt.Fprintln(r.Err, declared.Ends)
	}
	return nil
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

// printRun prints a Run in the format of -o.
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
	if len(o.Files) > 0 {
		return r.ofFile(ctx, o.Files[0])
	}
	kind, name := runflags.CutKind(o.from)
	switch {
	case o.Target != "":
		return runflags.RunOfTarget(o.Target)
	case kind == "run":
		old, err := r.findRun(ctx, c, name)
		if err != nil {
			return nil, err
		}
		run := &v1alpha1.Run{Spec: old.Spec}
		run.Spec.DesiredState, run.Spec.User = "", "" // it works for who creates it
		run.GenerateName = runflags.GeneratedName(run)
		return run, nil
	case kind == "schedule":
		var schedule v1alpha1.Schedule
		if err := r.find(ctx, c, "Schedule", name, &schedule); err != nil {
			return nil, err
		}
		t := schedule.Spec.RunTemplate
		run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Labels: t.Labels}, Spec: t.Spec}
		run.Spec.User = "" // as above
		run.GenerateName = runflags.GeneratedName(run)
		return run, nil
	}
	return nil, exit.Usagef("--from %q: write run/NAME or schedule/NAME", o.from)
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

// await shows a Run until it has ended, asks the user its requests, and returns an exit code for how it ended. It
// prints the conversation or, with -o, the Run.
func (r runCreator) await(ctx context.Context, run *v1alpha1.Run) error {
	fmt.Fprintf(r.Err, "run.deckhand.dev/%s created\n", run.Name)
	out := r.Out
	if r.o.output != "" {
		out = r.Err
	}
	o := r.o.logs
	o.follow = true
	w, err := r.newFollower(run.Name, o, out)
	if err != nil {
		return err
	}
	w.key.Namespace = run.Namespace // the manifest may name another than the flag
	w.root = run
	w.asker = r.newAsker(podReaderOf(r.Factory, w.client), &w.console)
	w.asker.isShown = !o.window.JSON
	w.asker.waits = r.o.cluster.timeout > 0 // another user may decide until then
	watching, cancel := r.untilTimeout(ctx)
	defer cancel()
	ended, err := w.read(watching)
	switch {
	case ctx.Err() != nil:
		return r.leave(run, "\n", exit.Interrupted)
	case watching.Err() != nil:
		return r.leave(run, "\n"+r.o.cluster.timeout.String()+" have passed (--timeout). ", exit.Timeout)
	case errors.Is(err, errNeedsUser):
		return r.leave(run, "The Run waits for a user, and there is no terminal to ask one. ", exit.NeedsUser)
	case err != nil:
		return err
	}
	return r.printEnd(ctx, w.client, ended)
}

// untilTimeout returns a context that ends at the time of --timeout.
func (r runCreator) untilTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.o.cluster.timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, r.o.cluster.timeout)
}

// leave prints why the Run is no longer watched, and that it continues.
func (r runCreator) leave(run *v1alpha1.Run, why string, code int) error {
	fmt.Fprintf(r.Err, "%sThe Run continues. To watch it again: %s. To end it: %s\n", why, requests.Command("logs -f", run), requests.Command("stop", run))
	return exit.EndedError{Code: code}
}

// printEnd prints how a Run ended.
func (r runCreator) printEnd(ctx context.Context, c client.Client, run *v1alpha1.Run) error {
	fmt.Fprintf(r.Err, "run.deckhand.dev/%s %s: %s\n", run.Name, reason(run), untrusted.Line(briefMessage(run), 1024))
	r.sayDenied(run)
	sayForeign(r.Err, run)
	code := exit.CodeOf(reason(run))
	if code != exit.OK {
		fmt.Fprintf(r.Err, "For more: %s\n", requests.Command("why", run))
	}
	r.sayContinuable(ctx, c, run)
	switch {
	case r.o.output != "":
		if err := r.printRun(run, ""); err != nil {
			return err
		}
	case run.Spec.Workflow != "":
		printResult(r.Out, run) // there is no conversation that has it
	}
	if code != exit.OK {
		return exit.EndedError{Code: code}
	}
	return nil
}
