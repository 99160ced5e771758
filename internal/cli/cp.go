package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

type cpOptions struct {
	force bool
	pod   filesPodOptions
}

func newCp(f *Factory) *cobra.Command {
	var o cpOptions
	c := &cobra.Command{
		Use:   "cp RUN:PATH LOCAL",
		Short: "Copy a file or directory out of the workspace of a Run",
		Example: "  kubectl deckhand cp fix:report.md .\n" +
			"  kubectl deckhand cp fix:report.md - | less\n" +
			"  kubectl deckhand cp fix:. files",
		Args: arguments(2, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if !strings.Contains(args[0], ":") && strings.Contains(args[1], ":") {
				return copier{f}.refuseToSend(args[1])
			}
			return copier{f}.cp(c.Context(), args[0], args[1], o)
		},
	}
	c.Flags().BoolVar(&o.force, "force", false, "Replace local files that exist")
	o.pod.bind(c)
	return c
}

// A copier copies files out of workspaces.
type copier struct{ *Factory }

// refuseToSend returns the error of a command that copies into a Run.
func (c copier) refuseToSend(target string) error {
	namespace, err := c.Namespace()
	if err != nil {
		return err
	}
	run, _, _ := strings.Cut(target, ":")
	return exit.Usagef("files cannot be copied into a Run: only RUN:PATH LOCAL copies. To give an agent files, set spec.workspace.files or spec.workspace.git of the Agent. To tell it what to do: %s",
		requests.CommandAbout("message", client.ObjectKey{Namespace: namespace, Name: run}, "TEXT"))
}

// cp copies files. A pod that works sends them itself; for a finished Run a pod is created that
// reads the volume, or without a volume the log is read.
func (c copier) cp(ctx context.Context, source, local string, o cpOptions) error {
	name, from, err := splitSource(source)
	if err != nil {
		return err
	}
	api, err := c.Client()
	if err != nil {
		return err
	}
	run, err := c.findRun(ctx, api, name)
	if err != nil {
		return err
	}
	if run.Spec.Workflow != "" {
		return fmt.Errorf("run %s runs Workflow %s, so it has no files. Name one of its child Runs: kubectl deckhand list --children -l %s=%s -n %s", run.Name, run.Spec.Workflow, v1alpha1.LabelWorkflowRun, run.Name, run.Namespace)
	}
	out := c.Out
	if terminal.IsTerminal(out) { // a model may have written the file
		out = &terminal.SafeWriter{Out: out}
	}
	e := &extractor{out: out, local: local, name: path.Base(from), force: o.force, progress: c.progress()}
	if isFinished(run) && (run.Status.Attempt == nil || run.Status.Attempt.VolumeClaim == "") {
		return c.copyFromLog(ctx, api, run, from, e)
	}
	pods := filesPods{Factory: c.Factory, client: api, run: run, o: o.pod, folder: runnerpod.WorkspaceFolder}
	at, release, err := pods.find(ctx)
	if err != nil {
		return err
	}
	defer release()
	err = pods.receive(ctx, at, from, e.extract)
	if err == nil || e.copied.files > 0 {
		c.reportCopied(e)
	}
	return err
}

// splitSource splits RUN:PATH. The path is relative to the workspace.
func splitSource(source string) (run, from string, err error) {
	run, from, found := strings.Cut(source, ":")
	if !found || run == "" {
		return "", "", exit.Usagef("%q: write RUN:PATH, for example fix:report.md, or fix:. for all files", source)
	}
	if rest, absolute := strings.CutPrefix(from, task.Workspace); absolute && (rest == "" || rest[0] == '/') {
		from = rest
	}
	from = path.Clean(strings.TrimLeft(from, "/"))
	if from == ".." || strings.HasPrefix(from, "../") {
		return "", "", exit.Usagef("%q: PATH must be in the workspace: write a path without ..", source)
	}
	return run, from, nil
}

// notSent returns the error for files that the runner did not send, with the files that exist.
func notSent(run *v1alpha1.Run, said string) error {
	text := untrusted.Line(strings.TrimSpace(said), 1024)
	if strings.Contains(said, "first process of a runner pod") {
		return fmt.Errorf("the runner of Run %s cannot send files: its image is older than this command. Name a newer one with --image", run.Name)
	}
	if result := progressOf(run).Result; result != nil && len(result.Files) > 0 {
		var names []string
		for _, file := range result.Files {
			names = append(names, untrusted.Line(file.Path, 200))
		}
		text += ". The agent changed: " + strings.Join(names, ", ")
	}
	return errors.New(text)
}

// reportCopied prints which files were copied, and which were not.
func (c copier) reportCopied(e *extractor) {
	c.reportLeftOut(e.links, "symbolic links", "it is a symbolic link")
	c.reportLeftOut(e.controls, "names with control or invisible characters", "its name has control or invisible characters")
	if e.local != "-" {
		fmt.Fprintf(c.Err, "Copied %s to %s\n", e.copied, untrusted.Line(e.local, 400))
	}
}

func (c copier) reportLeftOut(names []string, kind, because string) {
	const most = 10
	for _, name := range names[:min(len(names), most)] {
		fmt.Fprintf(c.Err, "Not copied, because %s: %s\n", because, untrusted.Line(name, 400))
	}
	if more := len(names) - most; more > 0 {
		fmt.Fprintf(c.Err, "%d more %s were not copied\n", more, kind)
	}
}

// progress returns a function that shows on a terminal how much was copied, a few times a second.
func (c copier) progress() func(copied) {
	if !terminal.IsTerminal(c.Err) {
		return func(copied) {}
	}
	var last time.Time
	return func(done copied) {
		if now := c.Now(); now.Sub(last) > 200*time.Millisecond {
			last = now
			fmt.Fprintf(c.Err, "\r%s\x1b[K\r", done)
		}
	}
}

// bounded keeps the beginning of its input.
type bounded struct {
	bytes.Buffer
	limit int
}

func (b *bounded) Write(p []byte) (int, error) {
	_, _ = b.Buffer.Write(p[:min(len(p), b.limit-b.Len())]) // a Buffer does not fail
	return len(p), nil
}
