package local

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
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// errRunnerEnded ends a question to the user.
var errRunnerEnded = errors.New("the Run has ended")

// ask asks the user, and writes the answer to the signals of the runner. Without a terminal it denies.
func (w *watch) ask(p events.Pending) error {
	if !w.run.Interactive() {
		return w.denyUnseen(p)
	}
	w.console.Hold()
	defer w.console.Release()
	defer func() { w.status.wasShown(w.run.Now()) }() // the user saw the question
	run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "local", Name: w.name}}
	requests.Show(w.run.Streams, w.run.Err, run, requestOf(p), "")
	read := func(question string) (string, error) { return w.lines.Read(w.ctx, question, w.checkRuns) }
	if f, isForm := requests.FormOf(p.Schema); isForm && p.Kind == requests.KindQuestion {
		return w.askForm(p, f, read)
	}
	return w.askLine(p, read)
}

// hasEnded reports whether no further requests can be asked.
func (w *watch) hasEnded(err error) bool {
	return errors.Is(err, errRunnerEnded) || w.ctx.Err() != nil
}

// askLine asks the user until a line decides.
func (w *watch) askLine(p events.Pending, read func(string) (string, error)) error {
	question := "Approve this call? [y: approve, n: deny] "
	if p.Kind == requests.KindQuestion {
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
func (w *watch) askForm(p events.Pending, f requests.Form, read func(string) (string, error)) error {
	closed := false
	ask := requests.FormAsker{Out: w.run.Err, Read: func(question string) (string, error) {
		line, err := read(question)
		closed = err == nil && !strings.HasSuffix(line, "\n")
		return line, err
	}}
	for {
		value, err := ask.Ask(f)
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
		wrong := schema.Validate(f.Schema, schema.Fill(f.Schema, json.RawMessage(value)))
		if wrong == nil {
			return w.send(task.Decision{Request: p.ID, Type: string(v1alpha1.DecisionAnswer), Value: value})
		}
		fmt.Fprintln(w.run.Err, untrusted.Line(wrong.Error(), requests.MaxShownError))
	}
}

// decided returns the Decision of a line, or false.
func decided(p events.Pending, line string) (task.Decision, bool) {
	d := task.Decision{Request: p.ID, Type: string(v1alpha1.DecisionApprove), Digest: p.Digest}
	switch {
	case line == "":
		return d, false
	case p.Kind == requests.KindQuestion:
		return task.Decision{Request: p.ID, Type: string(v1alpha1.DecisionAnswer), Value: line}, true
	case strings.EqualFold(line, "y"), strings.EqualFold(line, "yes"):
		return d, true
	case strings.EqualFold(line, "n"), strings.EqualFold(line, "no"):
		return task.Decision{Request: p.ID, Type: string(v1alpha1.DecisionDeny)}, true
	}
	return d, false
}

// denyUnseen denies a request that cannot be asked. A question cannot be denied, so the Run is stopped.
func (w *watch) denyUnseen(p events.Pending) error {
	question := untrusted.Line(p.Question, 300)
	if p.Kind != requests.KindApproval {
		fmt.Fprintln(w.run.Err, "The agent asks: "+question+" There is no terminal to answer at, so the Run is stopped. Run it at a terminal, or say the answer in the prompt.")
		w.sent.Stop = true
		return w.writeSignals()
	}
	fmt.Fprintln(w.run.Err, "A call of "+untrusted.Line(p.Tool, 100)+" needs an approval, and is denied, because there is no terminal to ask you. Run it at a terminal, or allow the call in spec.policy of the Agent.")
	return w.send(task.Decision{
		Request: p.ID, Type: string(v1alpha1.DecisionDeny), By: w.run.Program,
		Reason: "There is no terminal, so no user was asked. Do without this call.",
	})
}

// send adds a Decision to the signals. Without By its author is the user of this machine, who is in every group.
func (w *watch) send(d task.Decision) error {
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
func (w *watch) writeSignals() error {
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
func (w *watch) checkRuns() error {
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
