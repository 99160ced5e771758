package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
)

// completionTimeout is how long a shell waits at most for names.
const completionTimeout = 5 * time.Second

// A nameCompletion lets shells complete names of Runs, Agents, Workflows, requests and namespaces.
type nameCompletion struct{ *Factory }

func (n nameCompletion) addTo(root *cobra.Command) {
	for _, c := range root.Commands() {
		switch c.Name() {
		case "why":
			c.ValidArgsFunction = n.with(first(explainedNames))
		case "logs", "tree", "result", "message", "pending", "cost", "retry":
			c.ValidArgsFunction = n.with(first(runNames))
		case "continue", "fork":
			c.ValidArgsFunction = n.with(first(runNames))
			_ = c.RegisterFlagCompletionFunc("agent", n.with(agentNames)) // it fails for unknown flags
			_ = c.RegisterFlagCompletionFunc("workspace", cobra.FixedCompletions([]string{string(v1alpha1.ContinueCopy), string(v1alpha1.ContinueShare), string(v1alpha1.ContinueFresh)}, cobra.ShellCompDirectiveNoFileComp))
		case "pause", "resume", "stop":
			c.ValidArgsFunction = n.with(runNames)
		case "approve", "deny", "answer", "grant":
			c.ValidArgsFunction = n.with(n.requests)
		case "cp":
			c.ValidArgsFunction = n.cp
		case "hosts":
			c.ValidArgsFunction = n.with(first(agentNames))
		case "run":
			c.ValidArgsFunction = n.with(first(targetNames))
			_ = c.RegisterFlagCompletionFunc("from", n.with(sourceNames)) // it fails for unknown flags
		case "list":
			_ = c.RegisterFlagCompletionFunc("agent", n.with(targetNames))
			_ = c.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(states(), cobra.ShellCompDirectiveNoFileComp))
		}
	}
	_ = root.RegisterFlagCompletionFunc("namespace", n.with(namespaceNames)) // it fails for unknown flags
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Args, c.RunE = cobra.ArbitraryArgs, unknownShell
			for _, shell := range c.Commands() {
				shell.Args = noArguments
			}
		}
	}
}

// unknownShell returns the error of the command completion for an unknown or missing shell. The command does not print
// its help instead, because a shell sources the output.
func unknownShell(c *cobra.Command, args []string) error {
	var shells []string
	for _, s := range c.Commands() {
		shells = append(shells, s.Name())
	}
	if len(args) == 0 {
		return exit.Usagef("the name of a shell is missing: write one of %s, for example %s %s", strings.Join(shells, ", "), c.CommandPath(), shells[0])
	}
	return exit.Usagef("there is no completion for %q: write one of %s", args[0], strings.Join(shells, ", "))
}

// A completer returns the possible next arguments; none if they cannot be known.
type completer func(ctx context.Context, c client.Client, namespace string, args []string) []string

func (n nameCompletion) with(names completer) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(command.Context(), completionTimeout)
		defer cancel()
		c, err := n.Client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		namespace, err := n.Namespace()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(ctx, c, namespace, args), cobra.ShellCompDirectiveNoFileComp
	}
}

// first completes only the first argument.
func first(names completer) completer {
	return func(ctx context.Context, c client.Client, namespace string, args []string) []string {
		if len(args) > 0 {
			return nil
		}
		return names(ctx, c, namespace, args)
	}
}

func runNames(ctx context.Context, c client.Client, namespace string, _ []string) []string {
	return namesOf(ctx, c, "Run", namespace)
}

func agentNames(ctx context.Context, c client.Client, namespace string, _ []string) []string {
	return namesOf(ctx, c, "Agent", namespace)
}

func targetNames(ctx context.Context, c client.Client, namespace string, _ []string) []string {
	targets := namesOf(ctx, c, "Agent", namespace)
	for _, name := range namesOf(ctx, c, "Workflow", namespace) {
		targets = append(targets, "workflow/"+name)
	}
	return targets
}

// sourceNames returns the Runs that run --from can repeat.
func sourceNames(ctx context.Context, c client.Client, namespace string, _ []string) []string {
	var sources []string
	for _, name := range namesOf(ctx, c, "Run", namespace) {
		sources = append(sources, "run/"+name)
	}
	for _, name := range namesOf(ctx, c, "Schedule", namespace) {
		sources = append(sources, "schedule/"+name)
	}
	return sources
}

// explainedNames returns the objects that why explains: Runs by name, and other objects after their kind.
func explainedNames(ctx context.Context, c client.Client, namespace string, _ []string) []string {
	names := namesOf(ctx, c, "Run", namespace)
	for _, k := range explainedKinds[1:] { // the first is Run
		for _, name := range namesOf(ctx, c, k.kind, namespace) {
			names = append(names, strings.ToLower(k.kind)+"/"+name)
		}
	}
	return names
}

// requests completes a Run, and then one of its requests.
func (n nameCompletion) requests(ctx context.Context, c client.Client, namespace string, args []string) []string {
	if len(args) == 0 {
		return runNames(ctx, c, namespace, args)
	}
	run, err := n.findRun(ctx, c, args[0])
	if err != nil || len(args) > 1 {
		return nil
	}
	var ids []string
	for _, r := range openRequests(run) {
		ids = append(ids, r.ID)
	}
	return ids
}

// cp completes RUN: and then a local path.
func (n nameCompletion) cp(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	runs, directive := n.with(runNames)(command, args, begun)
	for i := range runs {
		runs[i] += ":"
	}
	return runs, directive | cobra.ShellCompDirectiveNoSpace
}

func namespaceNames(ctx context.Context, c client.Client, _ string, _ []string) []string {
	var list corev1.NamespaceList
	if c.List(ctx, &list) != nil {
		return nil
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}
