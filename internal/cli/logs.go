package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/internal/cli/conversation"
)

// runnerContainer is the name of the container of the runner in a pod.
const runnerContainer = "runner"

// pollInterval is how long logs -f waits before it looks again for a pod.
const pollInterval = time.Second

// A logOpener opens the log of a pod.
type logOpener func(ctx context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error)

type logsOptions struct {
	follow, json bool
	attempt      int
	color        string
}

func newLogs(f *Factory) *cobra.Command {
	var o logsOptions
	c := &cobra.Command{
		Use:   "logs RUN",
		Short: "Print the conversation of a Run from the logs of its pods",
		Args:  arguments(1, 1),
		RunE:  func(c *cobra.Command, args []string) error { return f.logs(c.Context(), args[0], o) },
	}
	c.Flags().BoolVarP(&o.follow, "follow", "f", false, "Wait for more until the Run ends")
	c.Flags().BoolVar(&o.json, "json", false, "Print the events as JSON lines")
	c.Flags().IntVar(&o.attempt, "attempt", 0, "Print only this attempt; 0 prints all")
	c.Flags().StringVar(&o.color, "color", "auto", "Color the output: auto, always or never")
	return c
}

func (f *Factory) logs(ctx context.Context, name string, o logsOptions) error {
	c, open, err := f.logClients()
	if err != nil {
		return err
	}
	namespace, err := f.Namespace()
	if err != nil {
		return err
	}
	options, err := f.conversationOptions(o)
	if err != nil {
		return err
	}
	r := &logReader{
		f: f, o: o, client: c, open: open, key: client.ObjectKey{Namespace: namespace, Name: name},
		printer: conversation.New(options),
	}
	err = r.read(ctx)
	if o.follow && ctx.Err() != nil {
		err = nil // the user ended it
		fmt.Fprintf(f.Err, "\nThe Run continues. To watch it again: kubectl deckhand logs -f %s -n %s\n", name, namespace)
	}
	return errors.Join(err, r.printer.Close())
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

// conversationOptions says how the terminal shows a conversation. NO_COLOR is a convention
// of many programs (no-color.org).
func (f *Factory) conversationOptions(o logsOptions) (conversation.Options, error) {
	options := conversation.Options{Out: f.Out, JSON: o.json}
	file, isFile := f.Out.(*os.File)
	isTerminal := isFile && term.IsTerminal(int(file.Fd()))
	if isTerminal {
		options.Width, _, _ = term.GetSize(int(file.Fd())) // 0: the default
	}
	switch o.color {
	case "always":
		options.Color = true
	case "never":
	case "auto":
		options.Color = isTerminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	default:
		return options, usageErrorf("unknown value %q of --color: use auto, always or never", o.color)
	}
	return options, nil
}
