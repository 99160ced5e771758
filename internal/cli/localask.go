package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// errRunnerEnded ends a question to the user.
var errRunnerEnded = errors.New("the Run has ended")

// ask asks the user, and writes the answer to the signals of the runner. Where there is no
// terminal it denies.
func (w *localWatch) ask(p events.Pending) error {
	if !w.l.interactive() {
		return w.denyUnseen(p)
	}
	w.console.hold()
	defer w.console.release()
	run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "local", Name: w.name}}
	w.l.showRequest(w.l.Err, run, requestOf(p), "")
	read := func(question string) (string, error) { return w.lines.read(w.ctx, question, w.checkRuns) }
	if f, isForm := formOf(p.Schema); isForm && p.Kind == kindQuestion {
		return w.askForm(p, f, read)
	}
	return w.askLine(p, read)
}

// hasEnded reports whether nobody is to be asked any more.
func (w *localWatch) hasEnded(err error) bool {
	return errors.Is(err, errRunnerEnded) || w.ctx.Err() != nil
}

// askLine asks the user until a line decides.
func (w *localWatch) askLine(p events.Pending, read func(string) (string, error)) error {
	question := "Approve this call? [y: approve, n: deny] "
	if p.Kind == kindQuestion {
		question = "Answer: "
	}
	for {
		line, err := read(question)
		if w.hasEnded(err) {
			return nil // the last event says how it ended
		}
		if err != nil {
			return err
		}
		if !strings.HasSuffix(line, "\n") { // the terminal was closed
			return w.denyUnseen(p)
		}
		if d, is := decided(p, strings.TrimSpace(line)); is {
			return w.send(d)
		}
	}
}

// askForm asks the user for the values of a form. Without an answer the Run cannot continue, so that
// the user is asked again.
func (w *localWatch) askForm(p events.Pending, f form, read func(string) (string, error)) error {
	closed := false
	ask := formAsker{w.l.Err, func(question string) (string, error) {
		line, err := read(question)
		closed = err == nil && !strings.HasSuffix(line, "\n")
		return line, err
	}}
	for {
		value, err := ask.ask(f)
		switch {
		case errors.Is(err, errRunnerEnded) || w.ctx.Err() != nil:
			return nil //nolint:nilerr // the last event says how it ended
		case err != nil:
			return err
		case closed:
			return w.denyUnseen(p)
		case value == "":
			continue
		}
		wrong := schema.Validate(f.schema, schema.Fill(f.schema, json.RawMessage(value)))
		if wrong == nil {
			return w.send(task.Decision{Request: p.ID, Type: string(v1alpha1.DecisionAnswer), Value: value})
		}
		fmt.Fprintln(w.l.Err, untrusted.Line(wrong.Error(), maxShownError))
	}
}

// decided returns the Decision of a line; false: it is none.
func decided(p events.Pending, line string) (task.Decision, bool) {
	d := task.Decision{Request: p.ID, Type: string(v1alpha1.DecisionApprove), Digest: p.Digest}
	switch {
	case line == "":
		return d, false
	case p.Kind == kindQuestion:
		return task.Decision{Request: p.ID, Type: string(v1alpha1.DecisionAnswer), Value: line}, true
	case strings.EqualFold(line, "y"), strings.EqualFold(line, "yes"):
		return d, true
	case strings.EqualFold(line, "n"), strings.EqualFold(line, "no"):
		return task.Decision{Request: p.ID, Type: string(v1alpha1.DecisionDeny)}, true
	}
	return d, false
}

// denyUnseen denies a request that nobody can be asked. A question has no such answer, so the
// Run is stopped.
func (w *localWatch) denyUnseen(p events.Pending) error {
	question := untrusted.Line(p.Question, 300)
	if p.Kind != kindApproval {
		fmt.Fprintln(w.l.Err, "The agent asks: "+question+" There is no terminal to answer at, so the Run is stopped. Run it at a terminal, or say the answer in the prompt.")
		w.sent.Stop = true
		return w.writeSignals()
	}
	fmt.Fprintln(w.l.Err, "A call of "+untrusted.Line(p.Tool, 100)+" needs an approval, and is denied, because there is no terminal to ask you. Run it at a terminal, or allow the call in spec.policy of the Agent.")
	return w.send(task.Decision{
		Request: p.ID, Type: string(v1alpha1.DecisionDeny), By: "kubectl deckhand",
		Reason: "There is no terminal, so no user was asked. Do without this call.",
	})
}

// send adds a Decision to the signals. Without By it is one of the user of this machine, who is in every group.
func (w *localWatch) send(d task.Decision) error {
	d.Name, d.By = fmt.Sprintf("decision-%d", len(w.sent.Decisions)+1), cmp.Or(d.By, localUser())
	w.sent.Decisions = append(w.sent.Decisions, d)
	return w.writeSignals()
}

// localUser returns the name of the user of this machine.
func localUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "user"
}

// writeSignals replaces the file, because the runner may read it at any time.
func (w *localWatch) writeSignals() error {
	data, err := json.Marshal(w.sent)
	if err != nil {
		return err
	}
	if err := os.WriteFile(w.signals+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(w.signals+".new", w.signals)
}

// checkRuns returns an error if the runner has ended.
func (w *localWatch) checkRuns() error {
	select {
	case <-w.ended:
		return errRunnerEnded
	default:
		return nil
	}
}

func requestOf(p events.Pending) *v1alpha1.PendingRequest {
	out := &v1alpha1.PendingRequest{
		ID: p.ID, Kind: p.Kind, Agent: p.Agent, Question: p.Question, Tool: p.Tool, Args: p.Args, Digest: p.Digest, Rule: p.Rule, Schema: p.Schema,
	}
	return out
}
