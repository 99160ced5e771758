package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
)

func newPending(f *Factory) *cobra.Command {
	var all bool
	var output string
	c := &cobra.Command{
		Use:   "pending [RUN]",
		Short: "List what Runs ask users; with RUN, show its requests in full",
		Args:  arguments(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 && all {
				return exit.Usagef("-A lists the requests of all Runs: leave out -A, or the name of the Run. See: %s --help", c.CommandPath())
			}
			if len(args) == 1 {
				return f.showPending(c.Context(), args[0], output)
			}
			return f.listPending(c.Context(), all, output)
		},
	}
	c.Flags().BoolVarP(&all, "all-namespaces", "A", false, "List the requests of all namespaces")
	bindOutput(c, &output, outputJSON, outputYAML)
	return c
}

// An openRequest is a request of a Run as JSON.
type openRequest struct {
	Namespace string                  `json:"namespace"`
	Run       string                  `json:"run"`
	Request   v1alpha1.PendingRequest `json:"request"`
	// Incomplete is why the request has only a part of the arguments.
	Incomplete string `json:"incomplete,omitempty"`
}

func (f *Factory) showPending(ctx context.Context, name, output string) error {
	c, err := f.Client()
	if err != nil {
		return err
	}
	run, err := f.findRun(ctx, c, name)
	if err != nil {
		return err
	}
	asked, pods := openRequests(run), podReaderOf(f, c)
	open := []openRequest{} // as JSON, no requests are an empty list
	for i := range asked {
		shown, unread := pods.whole(ctx, run, &asked[i])
		if output != "" {
			open = append(open, openRequest{run.Namespace, run.Name, *shown, whyUnread(unread)})
			continue
		}
		requests.Show(&f.Streams, f.Out, run, shown, whyUnread(unread))
		showCommands(f.Out, run, &asked[i])
	}
	switch {
	case output != "":
		return printValue(f.Out, output, open)
	case len(asked) == 0:
		fmt.Fprintf(f.Err, "Run %s asks nothing\n", run.Name)
	}
	return nil
}

func whyUnread(err error) string {
	if err == nil {
		return ""
	}
	return explain(err)
}

func (f *Factory) listPending(ctx context.Context, all bool, output string) error {
	c, err := f.Client()
	if err != nil {
		return err
	}
	options, err := f.selection(all, "")
	if err != nil {
		return err
	}
	runs, err := listRuns(ctx, c, options...)
	if err != nil {
		return err
	}
	t, found := newTable(f.Out, "NAMESPACE", "RUN", "REQUEST", "KIND", "TOOL", "ASKED", "QUESTION"), false
	open := []openRequest{}
	for i := range runs {
		for _, r := range openRequests(&runs[i]) {
			found = true
			open = append(open, openRequest{Namespace: runs[i].Namespace, Run: runs[i].Name, Request: r})
			t.row(runs[i].Namespace, runs[i].Name, r.ID, r.Kind, r.Tool, f.Since(terminal.TimeOf(r.AskedAt)), untrusted.Line(r.Question, 80))
		}
	}
	switch {
	case output != "":
		return printValue(f.Out, output, open)
	case !found:
		fmt.Fprintln(f.Err, "No Run asks anything")
		return nil
	}
	return t.print()
}

// openRequests returns the requests that users can decide, without requests that the operator ignores. A Run that has
// ended has none.
func openRequests(run *v1alpha1.Run) []v1alpha1.PendingRequest {
	var open []v1alpha1.PendingRequest
	if run.Status.CompletionTime != nil {
		return nil
	}
	for _, r := range progressOf(run).Pending {
		if untrusted.IsID(r.ID) && slices.Contains([]string{requests.KindApproval, requests.KindQuestion, requests.KindLimit}, r.Kind) {
			open = append(open, r)
		}
	}
	return open
}
