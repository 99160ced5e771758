package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/step"
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

// A logWindow chooses a part of a conversation.
type logWindow struct {
	terminal.ConversationFlags

	tail  int
	since string
	// from is the time of since; zero: from the beginning.
	from time.Time
}

func (l *logWindow) bind(c *cobra.Command) {
	c.Flags().IntVar(&l.tail, "tail", -1, "Print only this many of the last lines, and with -f what follows; -1 prints all")
	c.Flags().StringVar(&l.since, "since", "", "Print only what happened in this time, for example 90s, 5m or 2d")
}

// check returns an error for invalid flags, and sets the time from which events are printed.
func (l *logWindow) check(f *Factory) error {
	const all = -1
	if l.tail < all {
		return exit.Usagef("--tail %d: write how many lines are printed, or -1 for all", l.tail)
	}
	from, err := accountant{Factory: f}.oldest(l.since)
	l.from = from
	return err
}

// opener returns logs without the events before the window. In conversations, an event replaces these and reports the
// gap; in JSON nothing does.
func (l *logWindow) opener(open logOpener) logOpener {
	if l.from.IsZero() {
		return open
	}
	return func(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error) {
		log, err := open(ctx, namespace, pod, options)
		if err != nil {
			return nil, err
		}
		return l.reader(log), nil
	}
}

// reader returns a log without the events before the window.
func (l *logWindow) reader(log io.ReadCloser) io.ReadCloser {
	if l.from.IsZero() {
		return log
	}
	return &windowReader{log: log, lines: bufio.NewReader(log), from: l.from, says: !l.JSON}
}

// A windowReader leaves out the lines of a log before the first event from a time on.
type windowReader struct {
	log   io.ReadCloser
	lines *bufio.Reader
	from  time.Time
	// says reports whether an event replaces the events that are left out.
	says   bool
	inside bool
	rest   []byte
}

func (r *windowReader) Read(to []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.inside {
			return r.lines.Read(to)
		}
		line, err := readLine(r.lines)
		r.rest = r.passed(line)
		if err != nil && len(r.rest) == 0 {
			return 0, err
		}
	}
	n := copy(to, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// passed returns a line with what precedes it, or nothing if it is before the window.
func (r *windowReader) passed(line []byte) []byte {
	var e events.Line
	if json.Unmarshal(line, &e) != nil || e.V == 0 || e.T.Before(r.from) {
		return nil
	}
	r.inside = true
	if !r.says || e.N <= 1 {
		return line
	}
	dropped := e
	dropped.N, dropped.Type, dropped.Data = e.N-1, step.EventDropped, fmt.Appendf(nil, `{"from":%d}`, e.N)
	dropped.Message = "What happened before " + r.from.UTC().Format(time.TimeOnly) + " UTC is left out (--since)"
	text, err := json.Marshal(dropped)
	if err != nil {
		return line
	}
	return append(append(text, '\n'), line...)
}

func (r *windowReader) Close() error { return r.log.Close() }

// writer returns a writer of the last lines. It passes everything if all lines are printed.
func (l *logWindow) writer(out io.Writer, idle time.Duration) *tailWriter {
	return &tailWriter{out: out, most: l.tail, idle: idle, passing: l.tail < 0}
}

// A tailWriter holds back all but the last lines until nothing was written for a while. After that it passes on
// everything. The stream of a followed log does not mark the end of its existing lines.
type tailWriter struct {
	out  io.Writer
	most int
	idle time.Duration // 0: until flush

	mu      sync.Mutex
	lines   [][]byte // the last of them may have no end yet
	passing bool
	timer   *time.Timer
}

func (w *tailWriter) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.passing {
		return w.out.Write(text)
	}
	for part := range bytes.Lines(text) {
		if last := len(w.lines) - 1; last >= 0 && !bytes.HasSuffix(w.lines[last], []byte{'\n'}) {
			w.lines[last] = append(w.lines[last], part...)
			continue
		}
		w.lines = append(w.lines, bytes.Clone(part))
		w.lines = w.lines[max(0, len(w.lines)-w.most):]
	}
	if w.idle > 0 {
		if w.timer == nil {
			w.timer = time.AfterFunc(w.idle, func() { _ = w.flush() }) // the next write reports the error
		}
		w.timer.Reset(w.idle)
	}
	return len(text), nil
}

// flush writes the lines that are held back, and passes on everything after that.
func (w *tailWriter) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.passing {
		return nil
	}
	w.passing = true
	_, err := w.out.Write(bytes.Join(w.lines, nil))
	w.lines = nil
	return err
}
