package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
)

// Kinds of pending requests that a user decides.
const (
	kindApproval = "Approval"
	kindQuestion = "Question"
	kindLimit    = "Limit"
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
				return usageErrorf("-A lists the requests of all Runs: leave out -A, or the name of the Run. See: %s --help", c.CommandPath())
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
	requests, pods := openRequests(run), podReaderOf(f, c)
	open := []openRequest{} // as JSON, no requests are an empty list
	for i := range requests {
		shown, unread := pods.whole(ctx, run, &requests[i])
		if output != "" {
			open = append(open, openRequest{run.Namespace, run.Name, *shown, whyUnread(unread)})
			continue
		}
		f.showRequest(f.Out, run, shown, whyUnread(unread))
		showCommands(f.Out, run, &requests[i])
	}
	switch {
	case output != "":
		return printValue(f.Out, output, open)
	case len(requests) == 0:
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
			t.row(runs[i].Namespace, runs[i].Name, r.ID, r.Kind, r.Tool, f.since(timeOf(r.AskedAt)), untrusted.Line(r.Question, 80))
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

// openRequests returns the requests that a user decides, but for those that the operator ignores. Of a
// Run that has ended there are none.
func openRequests(run *v1alpha1.Run) []v1alpha1.PendingRequest {
	var open []v1alpha1.PendingRequest
	if run.Status.CompletionTime != nil {
		return nil
	}
	for _, r := range progressOf(run).Pending {
		if untrusted.IsID(r.ID) && slices.Contains([]string{kindApproval, kindQuestion, kindLimit}, r.Kind) {
			open = append(open, r)
		}
	}
	return open
}

// showRequest prints a request, and why it is not whole. Lines that the model wrote begin with a bar,
// so that they cannot pass for lines of this program.
func (s *Streams) showRequest(out io.Writer, run *v1alpha1.Run, r *v1alpha1.PendingRequest, incomplete string) {
	fmt.Fprintf(out, "Run %s/%s asks:\n", run.Namespace, run.Name)
	field(out, "Request", r.ID)
	field(out, "Kind", r.Kind)
	field(out, "Agent", r.Agent)
	field(out, "Tool", r.Tool)
	field(out, "Rule", r.Rule)
	if r.Approvers != nil {
		field(out, "Approvers", strings.Join(r.Approvers.Groups, ", "))
		field(out, "Users", strings.Join(r.Approvers.Users, ", "))
	}
	field(out, "Asked", s.since(timeOf(r.AskedAt)))
	block(out, "Question", r.Question)
	block(out, "Arguments", indented(r.Args))
	switch {
	case incomplete != "":
		fmt.Fprintln(out, "  Only a part of the arguments is shown: "+untrusted.Line(incomplete, 1024))
	case r.ArgsTruncated:
		fmt.Fprintf(out, "  Only a part of the arguments is shown. To see all of them: %s\n", command("pending", run))
	}
	block(out, "Schema of the value", indented(r.Schema))
}

func field(out io.Writer, name, value string) {
	if value != "" {
		fmt.Fprintf(out, "  %-11s%s\n", name+":", untrusted.Line(value, 1024))
	}
}

// block prints lines that a model may have written, each behind a bar. On a terminal long lines are
// cut into several, because what the terminal wraps has no bar and passes for a line of this program.
func block(out io.Writer, name, text string) {
	if text == "" {
		return
	}
	const bar = "    | "
	fmt.Fprintf(out, "  %s:\n", name)
	width := columns(out) - len(bar)
	for line := range strings.SplitSeq(strings.TrimRight(untrusted.Text(text), "\n"), "\n") {
		for _, part := range wrapped(line, width) {
			fmt.Fprintln(out, bar+part)
		}
	}
}

// indented returns JSON on several lines, and other text, such as JSON that is truncated, as
// it is.
func indented(text string) string {
	var out bytes.Buffer
	if json.Indent(&out, []byte(text), "", "  ") != nil {
		return text
	}
	return shortEscapes(out.String())
}

// shortEscapes writes line feeds, carriage returns and tabs of JSON as \n, \r and \t. A runner writes
// them as it writes other invisible characters, for example \u000a.
func shortEscapes(text string) string {
	short := map[string]string{"u000a": `\n`, "u000d": `\r`, "u0009": `\t`}
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, `\`)
		out.WriteString(before)
		if !found {
			return out.String()
		}
		length := min(len(rest), 1) // of what is escaped
		if strings.HasPrefix(rest, "u") {
			length = min(len(rest), 5)
		}
		escape := strings.ToLower(rest[:length])
		out.WriteString(cmp.Or(short[escape], `\`+rest[:length]))
		text = rest[length:]
	}
}

func timeOf(t *metav1.Time) metav1.Time {
	if t == nil {
		return metav1.Time{}
	}
	return *t
}
