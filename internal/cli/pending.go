package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/cli/transcript"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/step"
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
	c, run, err := f.openRun(ctx, name)
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

// Reasons why a request is not shown whole.
var (
	errNotInLog = errors.New("the logs of its pods do not have them")
	// errUnproven: the log alone proves nothing.
	errUnproven = errors.New("status.progress.pending has no displayDigest, because the runner is older than this command, so that nothing proves what a log shows")
	errForged   = errors.New("a log shows this request with a text that the runner did not report: it does not have the displayDigest in status.progress.pending. Do not trust this log")
)

// whole returns a request with all of its arguments, of which the status may have only a part. The log of the pod that
// asked has them, and they count only if they match the digest in the status. If they cannot be read, it returns the
// request unchanged, with the error.
func (r *podReader) whole(ctx context.Context, run *v1alpha1.Run, request *v1alpha1.PendingRequest) (*v1alpha1.PendingRequest, error) {
	switch {
	case !request.ArgsTruncated:
		return request, nil
	case request.DisplayDigest == "":
		return request, errUnproven
	}
	pods, err := r.list(ctx, run)
	if err != nil {
		return request, err
	}
	missing := errNotInLog
	for _, pod := range slices.Backward(pods) { // the last attempt asks
		args, err := r.argumentsOf(ctx, &pod, request)
		switch {
		case errors.Is(err, errForged), err != nil && !errors.Is(missing, errForged):
			missing = err // another log may have them
		case args != "":
			full := request.DeepCopy()
			full.Args, full.ArgsTruncated = args, false
			return full, nil
		}
	}
	return request, missing
}

// showWhole shows a request with all of its arguments. If a part is missing, it returns why.
func (r *podReader) showWhole(ctx context.Context, f *Factory, run *v1alpha1.Run, request *v1alpha1.PendingRequest) error {
	shown, unread := r.whole(ctx, run, request)
	requests.Show(&f.Streams, f.Err, run, shown, whyUnread(unread))
	return unread
}

// argumentsOf returns the arguments of a request from the log of a pod; empty: it has none.
func (r *podReader) argumentsOf(ctx context.Context, pod *corev1.Pod, request *v1alpha1.PendingRequest) (string, error) {
	log, err := r.openLog(ctx, pod, &corev1.PodLogOptions{Container: runnerContainer})
	if apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) { // deleted, or not started
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = log.Close() }()
	args, err := argumentsIn(log, request)
	if err != nil && !errors.Is(err, errForged) {
		err = fmt.Errorf("reading the log of pod %s: %w", pod.Name, err)
	}
	return args, err
}

// argumentsIn returns the arguments of a request from a log; empty: it has none. If a log has only other texts for the
// request, it returns errForged.
func argumentsIn(log io.Reader, r *v1alpha1.PendingRequest) (string, error) {
	lines, missing := bufio.NewReader(log), error(nil)
	for {
		line, err := readLine(lines)
		if p := requestIn(line); p != nil && p.ID == r.ID && p.Digest == r.Digest {
			if p.ComputeDisplayDigest() == r.DisplayDigest {
				return p.Args, nil
			}
			missing = errForged
		}
		if errors.Is(err, io.EOF) {
			return "", missing
		}
		if err != nil {
			return "", err
		}
	}
}

// readLine returns the next line of a log, as [bufio.Reader.ReadBytes] does, or an empty line if it is longer than any
// event: a custom runner may write lines without an end.
func readLine(log *bufio.Reader) ([]byte, error) {
	var line []byte
	isTooLong := false
	for {
		part, err := log.ReadSlice('\n')
		if isTooLong = isTooLong || len(line)+len(part) > transcript.MaxLine; isTooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// requestIn returns the request in a line of a log, or nil.
func requestIn(line []byte) *events.Pending {
	var e events.Line
	var p events.Pending
	if !bytes.Contains(line, []byte(step.EventPending)) || json.Unmarshal(line, &e) != nil || e.Type != step.EventPending || json.Unmarshal(e.Data, &p) != nil {
		return nil
	}
	return &p
}

// checkRequest returns a warning about a request of a log that the status has with another text.
func (r *logReader) checkRequest(ctx context.Context, p events.Pending) string {
	run := &v1alpha1.Run{}
	if r.client.Get(ctx, r.key, run) != nil || run.UID != r.last.UID {
		run = r.last
	}
	for _, q := range openRequests(run) {
		if q.ID == p.ID && q.DisplayDigest != "" && q.DisplayDigest != p.ComputeDisplayDigest() {
			return fmt.Sprintf("Do not decide by this text: status.progress.pending has request %s with another displayDigest. To see what the Run asks: %s", q.ID, requests.Command("pending", run))
		}
	}
	return ""
}

// notShownWhole returns the error for approving a request that was not shown completely.
func notShownWhole(run *v1alpha1.Run, r *v1alpha1.PendingRequest, cause error) error {
	if errors.Is(cause, errForged) {
		return fmt.Errorf("this request cannot be approved: %w. To refuse the call: %s. To end the Run: %s", cause, requests.Command("deny", run, r.ID), requests.Command("stop", run))
	}
	return fmt.Errorf("only a part of the arguments is shown, so you cannot be asked to approve them: %w. To see all of them: %s. If you agree with them, add --yes behind the id: %s --yes",
		cause, requests.Command("logs", run), requests.Command("approve", run, r.ID))
}
