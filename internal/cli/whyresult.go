package cli

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
)

// printResult prints the output of a Run and its changes.
func (e explainer) printResult(run *v1alpha1.Run) {
	result := progressOf(run).Result
	if result == nil {
		return
	}
	terminal.Block(e.Out, "Warning", result.Warning)
	terminal.Block(e.Out, "Result", result.Text)
	terminal.Block(e.Out, "Output", terminal.IndentedJSON(result.Output))
	if p := result.Published; p != nil {
		terminal.Field(e.Out, "Branch", p.Branch)
		terminal.Field(e.Out, "Commit", p.Commit)
	}
	terminal.Block(e.Out, "Changed files", fileList(result.Files))
}

// fileList returns the files, one on each line.
func fileList(files []v1alpha1.File) string {
	var lines []string
	for _, f := range files {
		lines = append(lines, untrusted.Line(f.Path, 256)+" ("+size(f.Size)+")")
	}
	return strings.Join(lines, "\n")
}

// printDecisions prints who made the Decisions that the Run acted on. The Run reports the names of the Decisions; their
// authors are in the Decisions, where an admission policy checks them.
func (e explainer) printDecisions(ctx context.Context, c client.Client, run *v1alpha1.Run) {
	t, found := newTable(e.Out, "DECISION", "REQUEST", "BY", "REASON"), false
	for _, done := range progressOf(run).Decided {
		if done.Name == "" || done.Refused != "" {
			continue
		}
		d, err := decisionOn(ctx, c, run, done)
		switch {
		case apierrors.IsNotFound(err):
			t.row(string(done.Type), done.Request, "unknown: Decision "+done.Name+" was deleted", "")
		case err != nil:
			fmt.Fprintln(e.Err, "Decisions are not shown: "+explain(err))
			return
		default:
			t.row(string(d.Spec.Type), done.Request, author(run, d), d.Spec.Reason)
		}
		found = true
	}
	if found {
		fmt.Fprintln(e.Out, "Decisions:")
		_ = t.print()
	}
}

// author names the author of a Decision, and the Run that it was for if a retry of that Run reuses it.
func author(run *v1alpha1.Run, d *v1alpha1.Decision) string {
	if d.Spec.Run != run.Name {
		return d.Spec.By + ", for Run " + d.Spec.Run
	}
	return d.Spec.By
}

// decisionOn returns a Decision that a Run reports. A Decision that is younger than the end of the Run, or about
// another Run whose approval this one does not reuse, has taken the name of a deleted one and does not count.
func decisionOn(ctx context.Context, c client.Client, run *v1alpha1.Run, done v1alpha1.DecidedRequest) (*v1alpha1.Decision, error) {
	d := &v1alpha1.Decision{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: done.Name}, d); err != nil {
		return nil, err
	}
	late := run.Status.CompletionTime != nil && run.Status.CompletionTime.Before(&d.CreationTimestamp)
	isOwn := d.Spec.Run == run.Name && !d.CreationTimestamp.Before(&run.CreationTimestamp)
	if late || !isOwn && !decisions.ProvesReuse(run, d, done) || done.Type != "" && done.Type != d.Spec.Type {
		return nil, apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("decisions").GroupResource(), done.Name)
	}
	return d, nil
}
