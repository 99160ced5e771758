package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const outputText = "text"

func newResult(f *Factory) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "result RUN",
		Short: "Print the result of a Run that has ended; the exit code says how it ended",
		Example: "  kubectl deckhand result haiku\n" +
			"  kubectl deckhand result review | jq .approved\n" +
			"  kubectl deckhand result fix -o json | jq -r .commit",
		Args: arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error { return f.result(c.Context(), args[0], output) },
	}
	bindOutput(c, &output, outputText, outputJSON)
	return c
}

// A runResult is the result of a Run, as -o json prints it.
type runResult struct {
	Run     string          `json:"run"`
	Reason  string          `json:"reason"`
	Message string          `json:"message,omitempty"`
	Warning string          `json:"warning,omitempty"`
	Text    string          `json:"text,omitempty"`
	Output  json.RawMessage `json:"output,omitempty"`
	Branch  string          `json:"branch,omitempty"`
	Commit  string          `json:"commit,omitempty"`
	Files   []v1alpha1.File `json:"files,omitempty"`
}

// result prints the result of a Run, and returns how the Run ended as an exit code.
func (f *Factory) result(ctx context.Context, name, output string) error {
	_, run, err := f.openRun(ctx, name)
	if err != nil {
		return err
	}
	if open := openRequests(run); len(open) > 0 {
		return fmt.Errorf("run %s has not ended (%s), so it has no result: it asks %s. To decide: %s", run.Name, reason(run), open[0].ID, commandFor(run, &open[0]))
	}
	if !isFinished(run) {
		return fmt.Errorf("run %s has not ended (%s), so it has no result: %s. To wait for its end: kubectl wait --for=condition=Finished --timeout=-1s run/%s -n %s",
			run.Name, reason(run), untrusted.Line(briefMessage(run), 400), run.Name, run.Namespace)
	}
	out := f.Out
	if terminal.IsTerminal(out) {
		out = &terminal.SafeWriter{Out: out}
	}
	if err := writeResult(out, run, output); err != nil {
		return err
	}
	f.sayDenied(run)
	sayForeign(f.Err, run)
	code := exit.CodeOf(reason(run))
	if code == exit.OK {
		f.sayWithoutResult(run, output)
		return nil
	}
	fmt.Fprintf(f.Err, "run.deckhand.dev/%s %s: %s\nFor more: %s\n", run.Name, reason(run), untrusted.Line(message(run), 1024), requests.Command("why", run))
	return exit.EndedError{Code: code}
}

// sayWithoutResult prints why a successful Run has no result in a format.
func (f *Factory) sayWithoutResult(run *v1alpha1.Run, format string) {
	result := progressOf(run).Result
	if result == nil {
		result = &v1alpha1.Result{}
	}
	switch {
	case format == outputJSON || result.Text != "" || result.Output != "" && format != outputText:
	case result.Output != "":
		fmt.Fprintf(f.Err, "Run %s has no text, but an output. See: %s\n", run.Name, requests.Command("result", run))
	case run.Spec.Workflow != "":
		fmt.Fprintf(f.Err, "Run %s has no result: Workflow %s declares no output. See: %s\n", run.Name, run.Spec.Workflow, requests.Command("logs", run))
	default:
		fmt.Fprintf(f.Err, "Run %s has no result: Agent %s ended without a text. See: %s\n", run.Name, run.Spec.Agent, requests.Command("logs", run))
	}
}

// sayDenied prints which tool calls of a Run were denied. An agent may end as Finished without them, because its model
// reads a denial as the result of the call.
func (f *Factory) sayDenied(run *v1alpha1.Run) {
	if text := deniedCalls(run); text != "" {
		fmt.Fprintf(f.Err, "%s. See: %s\n", text, requests.Command("logs", run))
	}
}

// sayForeign warns of references of another tool in the prompt of a Run, as the event ReferenceNotReplaced does, which
// exists for an hour only. The prompt of a child Run was evaluated, so it is data.
func sayForeign(to io.Writer, run *v1alpha1.Run) {
	if warning := foreignWarning(run); warning != "" {
		fmt.Fprintf(to, "Warning: %s\n", untrusted.Line(warning, task.MaxWarning))
	}
}

func foreignWarning(run *v1alpha1.Run) string {
	if isChild(run) {
		return ""
	}
	return template.ForeignWarning("spec.prompt", run.Spec.Prompt)
}

// deniedCalls describes how many tool calls of a Run were denied, and of which tools; empty: none were.
func deniedCalls(run *v1alpha1.Run) string {
	refused := progressOf(run).Refused
	if refused == nil || refused.ToolCalls == 0 {
		return ""
	}
	verb := "were"
	if refused.ToolCalls == 1 {
		verb = "was"
	}
	text := terminal.Plural(refused.ToolCalls, "tool call") + " " + verb + " denied"
	var names []string
	for _, t := range refused.Tools {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > 0 { // a tool may be denied by several
		text += " (" + strings.Join(names, ", ") + ")"
	}
	return untrusted.Line(text, 1024)
}

// writeResult writes the output of a Run or, if its Agent or Workflow declares none, its text. Format text selects the
// text, and json the whole result.
func writeResult(out io.Writer, run *v1alpha1.Run, format string) error {
	result := progressOf(run).Result
	if result == nil {
		result = &v1alpha1.Result{}
	}
	text := cmp.Or(result.Output, result.Text)
	switch format {
	case outputJSON:
		return printValue(out, outputJSON, resultOf(run, result))
	case outputText:
		text = result.Text
	}
	if text == "" {
		return nil
	}
	_, err := fmt.Fprintln(out, text)
	return err
}

func resultOf(run *v1alpha1.Run, result *v1alpha1.Result) runResult {
	r := runResult{
		Run: run.Name, Reason: reason(run), Message: message(run), Warning: result.Warning, Text: result.Text, Files: result.Files,
	}
	if foreign := foreignWarning(run); foreign != "" {
		r.Warning = strings.TrimPrefix(r.Warning+"\n"+foreign, "\n")
	}
	switch {
	case result.Output == "":
	case json.Valid([]byte(result.Output)):
		r.Output = json.RawMessage(result.Output)
	default: // a runner wrote it
		r.Output, _ = json.Marshal(result.Output) // a string is always JSON
	}
	if p := result.Published; p != nil {
		r.Branch, r.Commit = p.Branch, p.Commit
	}
	return r
}
