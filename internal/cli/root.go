// Package cli has the commands of kubectl-deckhand, one in each file. A Factory gives them the client, the namespace,
// the terminal and the time. Texts of models and tools pass through package untrusted before they are printed.
package cli

import (
	"context"
	_ "embed"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/runflags"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
)

// Main runs a command and returns its exit code. Errors are printed with what to do next.
func Main(ctx context.Context, f *Factory, version string, args []string) int {
	root := newRoot(f, version)
	root.SetArgs(args)
	return exit.With(ctx, root.ExecuteContext(ctx), f.Err, explain)
}

// printError prints an error, escaped because servers may quote texts of a model.
func (f *Factory) printError(err error) {
	fmt.Fprintln(f.Err, "Error: "+untrusted.Text(explain(err)))
}

func newRoot(f *Factory, version string) *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-deckhand",
		Short:         "Show and control Runs of Deckhand",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl deckhand"},
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(c, args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetIn(f.In)
	root.SetOut(f.Out)
	root.SetErr(f.Err)
	root.SetFlagErrorFunc(flagError)
	f.bindFlags(root.PersistentFlags())
	root.AddCommand(
		newList(f), newLogs(f), newTree(f), newCost(f), newHosts(f), newWhy(f), newRun(f), newContinue(f), newFork(f), newRetry(f), newPending(f),
		newApprove(f), newDeny(f), newAnswer(f), newGrant(f), newMessage(f),
		newPause(f), newResume(f), newStop(f), newLint(f), newConvert(f), newCp(f), newResult(f), newVersion(f, version), newOptions(f),
	)
	for _, c := range root.Commands() {
		c.Aliases = aliases[c.Name()]
	}
	setHelp(root)
	nameCompletion{f}.addTo(root)
	return root
}

func newVersion(f *Factory, version string) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			if output != "" {
				return printValue(f.Out, output, map[string]string{"version": version, "goVersion": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
			}
			fmt.Fprintln(f.Out, version)
			return nil
		},
	}
	bindOutput(c, &output, outputJSON, outputYAML)
	return c
}

func noArguments(c *cobra.Command, args []string) error { return arguments(0, 0)(c, args) }

// arguments accepts from least to most arguments, and otherwise shows how the command is used.
func arguments(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) > most && most == 0:
			return exit.Usagef("unknown argument %q. See: %s --help", args[0], c.CommandPath())
		case len(args) < least || len(args) > most:
			return exit.Usagef("usage: %s. See: %s --help", c.UseLine(), c.CommandPath())
		}
		return nil
	}
}

// commandGroups are the commands as help lists them.
var commandGroups = []struct {
	id, title string
	commands  []string
}{
	{"start", "Start work:", []string{"run", "continue", "fork", "retry", "lint", "convert"}},
	{"see", "See what Runs do:", []string{"list", "logs", "why", "tree", "result", "cp", "cost", "hosts"}},
	{"decide", "Decide what Runs ask:", []string{"pending", "approve", "deny", "answer", "grant", "message"}},
	{"control", "Control Runs:", []string{"pause", "resume", "stop"}},
}

// usage is the template of the usage of a command. It leaves out the flags of kubectl for clusters and users, which are
// longer than all others together: the command options prints them.
//
//go:embed help.tmpl
var usage string

// setHelp groups the commands, and moves the flags that all of them have to the command options.
func setHelp(root *cobra.Command) {
	root.SetUsageTemplate(usage)
	groups := map[string]string{}
	for _, g := range commandGroups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, name := range g.commands {
			groups[name] = g.id
		}
	}
	for _, c := range root.Commands() {
		c.GroupID = groups[c.Name()]
	}
}

// newOptions returns the command that prints the flags of all commands, like kubectl options.
func newOptions(f *Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "Print the flags for clusters, users and namespaces, which all commands have",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(f.Out, "These flags can be passed to any command:\n\n"+c.Root().PersistentFlags().FlagUsages())
			return err
		},
	}
}

// aliases are names in other programs for commands that change nothing.
var aliases = map[string][]string{
	"list":    {"ls", "ps"},
	"why":     {"get", "describe", "show", "status", "explain", "inspect"},
	"logs":    {"log", "attach"},
	"pending": {"requests", "approvals", "inbox"},
	"cost":    {"costs", "usage"},
	"lint":    {"validate", "check"},
	"cp":      {"copy", "download"},
}

// instead suggests what to write for commands of other programs that change something. The command is not executed,
// because it may do something else than the user expects.
var instead = []struct {
	words string
	hint  string
}{
	{"delete del rm remove", "To delete a Run with its pods: kubectl delete run NAME. To end it and keep its result: kubectl deckhand stop NAME"},
	{"cancel kill abort end terminate quit", "To end a Run for good: kubectl deckhand stop NAME. To interrupt it: kubectl deckhand pause NAME"},
	{"rerun redo restart repeat resubmit again", "A Run is done once. To do the same work again, in a new session and an empty workspace: kubectl deckhand run --from run/NAME. To continue its session: kubectl deckhand continue NAME. To run a workflow from what failed: kubectl deckhand retry NAME"},
	{"unpause unsuspend", "To continue a paused Run: kubectl deckhand resume NAME. To continue a Run that has ended: kubectl deckhand continue NAME TEXT"},
	{"branch rewind", "To continue a Run from an earlier step: kubectl deckhand fork NAME --step N"},
	{"suspend hold", "To interrupt a Run: kubectl deckhand pause NAME"},
	{"create start submit launch new", "To create a Run: kubectl deckhand run AGENT TEXT"},
	{"exec sh bash shell", "Commands cannot be run in a Run. To copy its files: kubectl deckhand cp RUN:PATH PATH. To tell its agent what to do: kubectl deckhand message RUN TEXT"},
	{"apply edit patch set", "Agents, Models, Toolsets and Workflows are changed with kubectl: kubectl apply -f FILE. To create a Run: kubectl deckhand run AGENT TEXT"},
	{"reject refuse", "To refuse a tool call: kubectl deckhand deny RUN"},
	{"allow accept confirm", "To allow a tool call: kubectl deckhand approve RUN"},
	{"reply respond", "To answer a question: kubectl deckhand answer RUN TEXT"},
	{"ask send say tell prompt chat", "To give an agent new work: kubectl deckhand run AGENT TEXT. To send a message to a Run that works: kubectl deckhand message RUN TEXT"},
	{"wait watch follow", "To watch a Run: kubectl deckhand logs -f RUN. To watch all: kubectl deckhand list -w"},
	{"events event", "To see the events of a Run: kubectl deckhand why RUN"},
	{"login auth config", "The command line uses the kubeconfig of kubectl: see kubectl config get-contexts"},
}

// unknownCommand returns the error of a command that does not exist.
func unknownCommand(root *cobra.Command, word string) error {
	lower := strings.ToLower(word)
	for _, i := range instead {
		if slices.Contains(strings.Fields(i.words), lower) {
			return exit.Usagef("there is no command %q. %s", word, i.hint)
		}
	}
	if near := nearest(lower, commandNames(root)); len(near) > 0 {
		return exit.Usagef("there is no command %q. Did you mean %s?", word, strings.Join(near, ", "))
	}
	return exit.Usagef("there is no command %q. See: %s --help", word, root.CommandPath())
}

// commandNames returns the names of commands that are suggested for a mistyped word. Names of two letters are left out,
// because they are similar to every short word.
func commandNames(root *cobra.Command) []string {
	const shortest = 3
	var names []string
	for _, c := range root.Commands() {
		for _, name := range append([]string{c.Name()}, c.Aliases...) {
			if len(name) >= shortest {
				names = append(names, name)
			}
		}
	}
	return names
}

// flagError returns the error of a flag that cannot be parsed. If the command does not exist, the error is about the
// command, because its flags are unknown for that reason.
func flagError(c *cobra.Command, err error) error {
	if words := c.Flags().Args(); !c.HasParent() && len(words) > 0 {
		return unknownCommand(c, words[0])
	}
	return runflags.Invalid(c, err)
}
