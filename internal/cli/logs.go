package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
)

// runnerContainer is the name of the container of the runner in a pod.
const runnerContainer = "runner"

// A logOpener opens the log of a pod.
type logOpener func(ctx context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error)

type logsOptions struct {
	follow  bool
	attempt int
	window  logWindow
	// pod is how a volume is read, if the pods were deleted.
	pod filesPodOptions
}

// idle returns after how long without a new line the earlier lines of a followed log count as printed; 0: the log is
// not followed, and ends by itself.
func (o logsOptions) idle(interval time.Duration) time.Duration {
	if !o.follow {
		return 0
	}
	return interval
}

func newLogs(f *Factory) *cobra.Command {
	var o logsOptions
	c := &cobra.Command{
		Use:   "logs RUN",
		Short: "Print the conversation of a Run and of its child Runs",
		Args:  arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if o.attempt < 0 {
				return exit.Usagef("--attempt %d: attempts are numbered from 1. See: %s --help", o.attempt, c.CommandPath())
			}
			return f.logs(c.Context(), args[0], o)
		},
	}
	c.Flags().BoolVarP(&o.follow, "follow", "f", false, "Wait for more until the Run ends")
	c.Flags().IntVar(&o.attempt, "attempt", 0, "Print only this attempt; 0 prints all")
	o.window.Bind(c.Flags(), "Color the output", "Print the events as JSON lines")
	o.window.bind(c)
	o.pod.bind(c)
	return c
}

func (f *Factory) logs(ctx context.Context, name string, o logsOptions) error {
	if err := o.window.check(f); err != nil {
		return err
	}
	w, err := f.newFollower(name, o, f.Out)
	if err != nil {
		return err
	}
	w.open = o.window.opener(w.open)
	last := o.window.writer(w.out, o.idle(f.Interval))
	w.out = last
	_, err = w.read(ctx)
	err = cmp.Or(err, last.flush())
	if !o.follow || ctx.Err() == nil {
		return err
	}
	fmt.Fprintf(f.Err, "\nThe Run continues. To watch it again: %s\n", requests.CommandAbout("logs -f", w.key))
	return nil
}

func (f *Factory) logClients() (client.Client, logOpener, error) {
	c, err := f.Client()
	if err != nil || f.openLog != nil {
		return c, f.openLog, err
	}
	config, err := f.config.ClientConfig()
	if err != nil {
		return nil, nil, err
	}
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	return c, func(ctx context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
		return core.Pods(namespace).GetLogs(pod, o).Stream(ctx)
	}, nil
}
