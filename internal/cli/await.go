package cli

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
)

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
