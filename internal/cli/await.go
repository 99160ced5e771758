package cli

import (
	"context"
	"fmt"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/untrusted"
)

// await shows a Run until it has ended, asks the user what it asks, and returns how it ended as
// an exit code. The output has the conversation, or with -o the Run.
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
	w.asker.isShown = !o.json
	ended, err := w.read(ctx)
	switch {
	case ctx.Err() != nil:
		where := run.Name + " -n " + run.Namespace
		fmt.Fprintf(r.Err, "\nThe Run continues. To watch it again: kubectl deckhand logs -f %s. To end it: kubectl deckhand stop %s\n", where, where)
		return endedError{exitInterrupted}
	case err != nil:
		return err
	}
	return r.printEnd(ended)
}

// printEnd prints how a Run ended.
func (r runCreator) printEnd(run *v1alpha1.Run) error {
	fmt.Fprintf(r.Err, "run.deckhand.dev/%s %s: %s\n", run.Name, reason(run), untrusted.Line(briefMessage(run), 1024))
	code := exitCodeOf(reason(run))
	if code != exitOK {
		fmt.Fprintf(r.Err, "For more: kubectl deckhand why %s -n %s\n", run.Name, run.Namespace)
	}
	switch {
	case r.o.output != "":
		if err := r.printRun(run, ""); err != nil {
			return err
		}
	case run.Spec.Workflow != "":
		printResult(r.Out, run) // there is no conversation that has it
	}
	if code != exitOK {
		return endedError{code}
	}
	return nil
}
