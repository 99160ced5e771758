package local

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/deckhand-dev/deckhand/internal/cli/conversation"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A process describes how runner-local is started for a local Run: as its runner, and as its sandbox.
type process struct {
	program, dir         string
	place                place
	commands, unconfined bool
}

// sandbox returns the command of the sandbox. Its environment has only variables that commands may read.
func (p process) sandbox(log io.Writer) *exec.Cmd {
	c := exec.Command(p.program) //nolint:noctx // a canceled context asks the runner to end first
	c.Args = []string{"sandbox", "serve", "-socket=" + p.place.socket(), "-protect=" + p.place.sandbox, "-workspace=" + p.dir, "-home=" + p.place.home(), "-temp=" + p.place.temp()}
	if p.unconfined {
		c.Args = append(c.Args, "-open")
	} else {
		c.Args = append(c.Args, "-private")
	}
	c.Env, c.Stderr = []string{"PATH=" + systemPath(os.Getenv("PATH"))}, log
	for _, name := range []string{"LANG", "LC_ALL", "TZ"} {
		if value := os.Getenv(name); value != "" {
			c.Env = append(c.Env, name+"="+value)
		}
	}
	isolate(c)
	return c
}

// systemPath returns the directories of a PATH that confined commands can read.
func systemPath(path string) string {
	var out []string
	for _, dir := range filepath.SplitList(path) {
		for _, root := range []string{"/usr/", "/bin", "/sbin", "/opt/", "/nix/"} {
			if strings.HasPrefix(filepath.Clean(dir)+"/", root) {
				out = append(out, dir)
				break
			}
		}
	}
	return strings.Join(out, string(filepath.ListSeparator))
}

// runner returns the command of the runner. The task, with the keys, is its standard input.
func (p process) runner(input []byte, output, log *os.File) *exec.Cmd {
	c := exec.Command(p.program, "-task=-", "-workspace="+p.dir, "-state="+p.place.journal(), "-signals="+p.place.signals()) //nolint:noctx // it ends by signals, and not at once
	if p.commands {
		c.Args = append(c.Args, "-sandbox="+p.place.sandbox)
	}
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(input), output, log
	c.ExtraFiles = []*os.File{p.place.lock} // it uses the directory also after this process was killed
	isolate(c)
	return c
}

// execute starts the processes and shows the conversation until the runner ends.
func (r Run) execute(ctx context.Context, p process, work *runnerInput) error {
	log, err := os.OpenFile(p.place.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	input, err := json.Marshal(work)
	if err != nil {
		return err
	}
	logs, err := r.newWatch(ctx, p, work.Task.Run.Name)
	if err != nil {
		return err
	}
	sandboxEnded := make(chan struct{})
	if p.commands {
		sandbox := p.sandbox(log)
		if err := sandbox.Start(); err != nil {
			return fmt.Errorf("starting the sandbox: %w", err)
		}
		go func() { _ = sandbox.Wait(); close(sandboxEnded) }() // its log says why
		defer func() { _ = sandbox.Process.Signal(syscall.SIGTERM); <-sandboxEnded }()
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	runner := p.runner(input, write, log)
	err = runner.Start()
	_ = write.Close() // the runner has its own
	if err != nil {
		return fmt.Errorf("starting the runner: %w", err)
	}
	go func() { _ = runner.Wait(); close(logs.ended) }() // the last event says how it ended
	go r.interrupt(ctx, runner, logs.ended, sandboxEnded)
	fmt.Fprintf(r.Err, "Run %s works in %s\n", work.Task.Run.Name, p.dir)
	if err := logs.read(read); err != nil {
		_ = runner.Process.Kill() // nobody sees what it does
		return err
	}
	<-logs.ended
	return r.printEnd(logs, p.place)
}

// interrupt asks the runner to end when the user interrupts this program, and kills it when
// the user does so again or the sandbox is lost.
func (r Run) interrupt(ctx context.Context, runner *exec.Cmd, ended, sandboxEnded <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-ended:
		return
	case <-sandboxEnded:
		_ = runner.Process.Kill() // it would wait for another sandbox
		return
	}
	again := make(chan os.Signal, 2) // does not get the signal that ended the context
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(again)
	fmt.Fprintln(r.Err, "\nThe Run ends when its current step has ended. Press Ctrl-C again to end at once.")
	_ = runner.Process.Signal(syscall.SIGTERM)
	select {
	case <-again:
		_ = runner.Process.Kill()
	case <-ended:
	}
}

// printEnd prints how a Run ended, and where its journal is.
func (r Run) printEnd(w *watch, place place) error {
	if w.finished == nil && w.ctx.Err() != nil { // it was killed before it could end by itself
		fmt.Fprintf(r.Err, "Run %s was ended at once. Its journal and log are in %s\n", w.name, place.state)
		return exit.EndedError{Code: exit.Interrupted}
	}
	if w.finished == nil {
		text, _ := os.ReadFile(place.log()) // without it the error says less
		return fmt.Errorf("the runner ended without a result. Its log is %s:\n%s", place.log(), untrusted.Text(tail(string(text), 2000)))
	}
	code, how := exit.CodeOf(string(w.finished.Reason)), untrusted.Line(w.message, 1024)
	if w.finished.Reason == task.ReasonInterrupted {
		code = exit.Interrupted
		if w.ctx.Err() != nil {
			how = "ended, because you interrupted it"
		}
	}
	fmt.Fprintf(r.Err, "Run %s %s. Its journal and log are in %s\n", w.name, how, place.state)
	fmt.Fprintf(r.Err, "To continue it: the same command with --continue=%s and another -p\n", w.name)
	if code != exit.OK {
		return exit.EndedError{Code: code}
	}
	return nil
}

// tail returns the end of a text.
func tail(text string, most int) string {
	return text[max(0, len(text)-most):]
}

// A watch shows the events of a local Run, and answers its requests.
type watch struct {
	run     Run
	ctx     context.Context //nolint:containedctx // of the whole command, which this is a part of
	name    string
	signals string
	printer *conversation.Printer
	console terminal.Console
	status  status
	lines   *terminal.LineReader
	// ended is closed when the runner has ended.
	ended chan struct{}

	sent     task.Signals
	finished *events.RunFinished
	message  string
}

func (r Run) newWatch(ctx context.Context, p process, name string) (*watch, error) {
	options, err := terminal.ConversationOptions(r.Shown, r.Out)
	if err != nil {
		return nil, err
	}
	options.NamesRequests = r.Interactive()
	w := &watch{
		run: r, ctx: ctx, name: name, signals: p.place.signals(),
		lines: r.NewLineReader(), ended: make(chan struct{}), status: status{begun: r.Now()},
	}
	if !r.Shown.JSON {
		w.console.Status = terminal.NewStatusLine(r.Streams)
	}
	options.Out = w.console.Stream(shownWriter{options.Out, w})
	w.printer = conversation.New(options)
	return w, nil
}

// read shows events until the runner closes its output. It reads the output also while the user is asked, because a
// runner drops events that it cannot write, requests included.
func (w *watch) read(output io.Reader) error {
	defer w.showStatus()()
	lines := terminal.ReadLines(output)
	for {
		line, more := lines.Next()
		if _, err := w.printer.Write(line); err != nil {
			return err
		}
		if err := w.act(line); err != nil {
			return err
		}
		if !more {
			return w.printer.Close()
		}
	}
}

// act handles an event.
func (w *watch) act(line []byte) error {
	var e events.Line
	_ = json.Unmarshal(line, &e) // a line that is no event has no type
	w.status.add(e, w.run.Now())
	switch e.Type {
	case step.EventPending:
		var p events.Pending
		if err := json.Unmarshal(e.Data, &p); err != nil {
			return fmt.Errorf("reading what the Run asks: %w", err)
		}
		return w.ask(p)
	case step.EventRunFinished:
		w.finished, w.message = &events.RunFinished{}, e.Message
		if err := json.Unmarshal(e.Data, w.finished); err != nil {
			return fmt.Errorf("reading how the Run ended: %w", err)
		}
	default:
	}
	return nil
}
