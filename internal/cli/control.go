package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
)

func newPause(f *Factory) *cobra.Command {
	return newControl(f, "pause", "Pause Runs at the next safe point", v1alpha1.DesiredPaused)
}

func newResume(f *Factory) *cobra.Command {
	return newControl(f, "resume", "Continue paused Runs", v1alpha1.DesiredRunning)
}

func newStop(f *Factory) *cobra.Command {
	return newControl(f, "stop", "End Runs at the next safe point, for good", v1alpha1.DesiredStopped)
}

func newControl(f *Factory, name, short string, desired v1alpha1.DesiredState) *cobra.Command {
	const most = 1000
	return &cobra.Command{
		Use:   name + " RUN...",
		Short: short,
		Args:  arguments(1, most),
		RunE: func(c *cobra.Command, args []string) error {
			return f.setDesiredStates(c.Context(), args, desired)
		},
	}
}

// setDesiredStates sets spec.desiredState of Runs. It continues with the other Runs after an error.
func (f *Factory) setDesiredStates(ctx context.Context, names []string, desired v1alpha1.DesiredState) error {
	var last error
	for _, name := range names {
		err := f.setDesiredState(ctx, name, desired)
		if err == nil {
			continue
		}
		if last != nil {
			f.printError(last)
		}
		last = err
	}
	return last
}

// setDesiredState sets spec.desiredState of a Run that has not ended.
func (f *Factory) setDesiredState(ctx context.Context, name string, desired v1alpha1.DesiredState) error {
	c, run, err := f.openRun(ctx, name)
	if err != nil {
		return err
	}
	if run.Status.CompletionTime != nil {
		return fmt.Errorf("run %s has ended (%s), so it cannot be %s: create another Run", run.Name, reason(run), desired)
	}
	if desired == v1alpha1.DesiredRunning && run.Spec.DesiredState != v1alpha1.DesiredPaused {
		return notPaused(run)
	}
	patch := fmt.Sprintf(`{"spec":{"desiredState":%q}}`, desired)
	if err := c.Patch(ctx, run, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return err
	}
	fmt.Fprintf(f.Out, "run.deckhand.dev/%s: desiredState is %s\n", run.Name, desired)
	return nil
}

// notPaused returns the error for a Run that cannot be resumed, as kubectl rollout resume does: if the Run waits for
// something else, the user must know that.
func notPaused(run *v1alpha1.Run) error {
	if run.Spec.DesiredState == v1alpha1.DesiredStopped {
		return fmt.Errorf("run %s is not paused but stopped (spec.desiredState), and ends: create another Run", run.Name)
	}
	return fmt.Errorf("run %s is not paused, and its reason is %s: see what it does with %s", run.Name, reason(run), requests.Command("why", run))
}
