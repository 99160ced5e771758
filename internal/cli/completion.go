package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// completionTimeout is how long a shell waits at most for names.
const completionTimeout = 5 * time.Second

// addCompletions lets shells complete names of Runs, Agents, Workflows, requests and namespaces.
func (f *Factory) addCompletions(root *cobra.Command) {
	for _, c := range root.Commands() {
		switch c.Name() {
		case "logs", "tree", "why", "message", "pending":
			c.ValidArgsFunction = f.completion(f.completeFirst(f.completeRuns))
		case "pause", "resume", "stop":
			c.ValidArgsFunction = f.completion(f.completeRuns)
		case "approve", "deny", "answer", "grant":
			c.ValidArgsFunction = f.completion(f.completeRequest)
		case "cp":
			c.ValidArgsFunction = f.completeCp
		case "hosts":
			c.ValidArgsFunction = f.completion(f.completeFirst(f.completeAgents))
		case "run":
			c.ValidArgsFunction = f.completion(f.completeFirst(f.completeTargets))
		}
	}
	_ = root.RegisterFlagCompletionFunc("namespace", f.completion(f.completeNamespaces)) // it fails for unknown flags
}

// A completer returns what may stand after the arguments. Where it cannot be known, it is nothing.
type completer func(ctx context.Context, c client.Client, namespace string, args []string) []string

func (f *Factory) completion(names completer) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(command.Context(), completionTimeout)
		defer cancel()
		c, err := f.Client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		namespace, err := f.Namespace()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(ctx, c, namespace, args), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFirst completes the first argument alone.
func (*Factory) completeFirst(names completer) completer {
	return func(ctx context.Context, c client.Client, namespace string, args []string) []string {
		if len(args) > 0 {
			return nil
		}
		return names(ctx, c, namespace, args)
	}
}

func (*Factory) completeRuns(ctx context.Context, c client.Client, namespace string, _ []string) []string {
	return namesOf(ctx, c, "Run", namespace)
}

func (*Factory) completeAgents(ctx context.Context, c client.Client, namespace string, _ []string) []string {
	return namesOf(ctx, c, "Agent", namespace)
}

func (*Factory) completeTargets(ctx context.Context, c client.Client, namespace string, _ []string) []string {
	targets := namesOf(ctx, c, "Agent", namespace)
	for _, name := range namesOf(ctx, c, "Workflow", namespace) {
		targets = append(targets, "workflow/"+name)
	}
	return targets
}

// completeRequest completes a Run, and then one of its requests.
func (f *Factory) completeRequest(ctx context.Context, c client.Client, namespace string, args []string) []string {
	if len(args) == 0 {
		return f.completeRuns(ctx, c, namespace, args)
	}
	run, err := f.findRun(ctx, c, args[0])
	if err != nil || len(args) > 1 {
		return nil
	}
	var ids []string
	for _, r := range openRequests(run) {
		ids = append(ids, r.ID)
	}
	return ids
}

// completeCp completes RUN: and then a local path.
func (f *Factory) completeCp(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	runs, directive := f.completion(f.completeRuns)(command, args, begun)
	for i := range runs {
		runs[i] += ":"
	}
	return runs, directive | cobra.ShellCompDirectiveNoSpace
}

func (*Factory) completeNamespaces(ctx context.Context, c client.Client, _ string, _ []string) []string {
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
