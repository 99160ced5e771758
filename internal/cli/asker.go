package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
)

// An asker asks the user the open requests of Runs. Without a terminal, it prints the command that answers.
type asker struct {
	f       *Factory
	client  client.Client
	pods    *podReader
	console *terminal.Console
	lines   *terminal.LineReader
	// asked has the name of the Decision for each request that the user has seen, or an empty name if the user decides
	// later.
	asked map[string]string
	// failed has the requests about which the user is asked again, because a server failed.
	failed map[string]*failedAsk
	// noticed are the requests that were seen once: the conversation before them is printed
	// before the user is asked.
	noticed map[string]bool
	// isShown is whether the conversations already show the requests of Agents.
	isShown bool
	// waits is whether a Run with a request is still watched if there is no terminal.
	waits bool
}

func (f *Factory) newAsker(pods *podReader, screen *terminal.Console) *asker {
	toUser := *f
	toUser.Out = f.Err // the output has the conversation alone
	return &asker{f: &toUser, client: pods.client, pods: pods, console: screen, lines: f.NewLineReader(), asked: map[string]string{}, failed: map[string]*failedAsk{}, noticed: map[string]bool{}}
}

// ask asks about each open request of a Run once, and again if the Run refused the Decision. A request is asked about
// when the Run is read for the second time.
//
// It returns errNeedsUser if the Run asks and there is no terminal.
func (a *asker) ask(ctx context.Context, run *v1alpha1.Run) error {
	asked := false
	for _, r := range openRequests(run) {
		key := keyOf(run, &r)
		if !a.isDue(ctx, run, key) {
			continue
		}
		asked = true
		decided, err := a.askOnce(ctx, run, &r)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if isUnreachable(err) || isServerError(err) {
			a.askLater(key, err)
			continue
		}
		if err != nil {
			a.say("Nothing was decided: " + explain(err))
		}
		a.asked[key] = decided
	}
	if asked && !a.waits && !a.f.Interactive() {
		return errNeedsUser
	}
	return nil
}

// keyOf names a request of a Run.
func keyOf(run *v1alpha1.Run, r *v1alpha1.PendingRequest) string {
	return string(run.UID) + "/" + r.ID + "/" + r.Digest
}

// A failedAsk is a request about which the user is asked again.
type failedAsk struct {
	text string // the error that was printed last
	// failures counts the failed tries. looks is how many readings of the Run are skipped before the next try.
	failures, looks int
}

// askLater prints once why nothing was decided. The user is asked again after 1, 2, 4 and at most 32 readings of the
// Run, because asking may need the logs of all pods.
func (a *asker) askLater(key string, err error) {
	const most = 5
	if a.failed[key] == nil {
		a.failed[key] = &failedAsk{}
	}
	f := a.failed[key]
	if text := explain(err); text != f.text {
		f.text = text
		a.say("Nothing was decided, and you are asked again: " + text)
	}
	f.looks = 1<<min(f.failures, most) - 1
	f.failures++
}

// isDue reports whether the user is asked about a request now.
func (a *asker) isDue(ctx context.Context, run *v1alpha1.Run, key string) bool {
	if !a.noticed[key] {
		a.noticed[key] = true
		return false
	}
	if f := a.failed[key]; f != nil && f.looks > 0 {
		f.looks--
		return false
	}
	name, seen := a.asked[key]
	return !seen || a.wasRefused(ctx, run, name)
}

// wasRefused reports whether the Run refused the Decision of a name, and prints why.
func (a *asker) wasRefused(ctx context.Context, run *v1alpha1.Run, name string) bool {
	var d v1alpha1.Decision
	if name == "" || a.client.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: name}, &d) != nil {
		return false
	}
	applied := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionApplied)
	if applied == nil || applied.Status != "False" {
		return false
	}
	a.say("Decision " + name + " was refused: " + applied.Message)
	return true
}

// askOnce shows a request and returns the name of the Decision that the user makes, or an empty name.
func (a *asker) askOnce(ctx context.Context, run *v1alpha1.Run, r *v1alpha1.PendingRequest) (string, error) {
	if !a.f.Interactive() {
		a.say(a.notice(run, r) + " To decide: " + commandFor(run, r))
		return "", nil
	}
	a.console.Hold()
	defer a.console.Release()
	if r.Kind == requests.KindLimit {
		requests.Show(&a.f.Streams, a.f.Err, run, r, "")
		fmt.Fprintln(a.f.Err, "To raise the limit: "+commandFor(run, r))
		return "", nil
	}
	spec := v1alpha1.DecisionSpec{Run: run.Name, Type: v1alpha1.DecisionApprove}
	if r.Kind == requests.KindQuestion {
		spec.Type = v1alpha1.DecisionAnswer
	}
	if err := fill(ctx, a.client, r, &spec); err != nil {
		return "", err
	}
	shown, unread := a.pods.whole(ctx, run, withoutForm(r))
	if unread == nil || a.failed[keyOf(run, r)] == nil { // a part is shown once
		requests.Show(&a.f.Streams, a.f.Err, run, shown, whyUnread(unread))
	}
	if unread != nil {
		return "", notShownWhole(run, r, unread)
	}
	decided, err := a.readDecision(ctx, run, r, &spec)
	if err != nil || !decided {
		return "", err
	}
	d, err := decider{a.f}.createDecision(ctx, a.client, run.Namespace, spec)
	if err != nil {
		return "", err
	}
	return d.Name, nil
}

// notice returns, if there is no terminal, the notice that a Run asks. The conversation shows the question, except that
// of a Workflow.
func (a *asker) notice(run *v1alpha1.Run, r *v1alpha1.PendingRequest) string {
	if a.isShown && run.Spec.Workflow == "" {
		return "Run " + run.Name + " asks " + r.ID + "."
	}
	return "Run " + run.Name + " asks: " + untrusted.Line(r.Question, 300)
}

// readDecision reads the user's Decision; false: the user makes none.
func (a *asker) readDecision(ctx context.Context, run *v1alpha1.Run, r *v1alpha1.PendingRequest, spec *v1alpha1.DecisionSpec) (bool, error) {
	read := func(question string) (string, error) {
		return a.lines.Read(ctx, question, func() error { return checkOpen(ctx, a.client, run, r) })
	}
	if spec.Type == v1alpha1.DecisionApprove {
		line, err := read("Approve this request as " + spec.By + "? [y: approve, n: deny, Enter: decide later] ")
		line = strings.ToLower(strings.TrimSpace(line))
		switch {
		case err != nil:
			return false, err
		case line == "":
			return a.later(run, r, "")
		case line == "n", line == "no":
			spec.Type, spec.Digest = v1alpha1.DecisionDeny, ""
			return true, nil
		case line != "y" && line != "yes":
			return a.later(run, r, fmt.Sprintf("%q is neither y nor n. ", line))
		case r.Schema == "":
			return true, nil
		}
	}
	value, err := readValue(a.f.Err, read, r, *spec)
	if err != nil {
		return false, err
	}
	if value == "" {
		return a.later(run, r, "")
	}
	spec.Value = value
	return true, nil
}

// later prints how the user can decide later.
func (a *asker) later(run *v1alpha1.Run, r *v1alpha1.PendingRequest, why string) (bool, error) {
	fmt.Fprintln(a.f.Err, why+"To decide later: "+commandFor(run, r))
	return false, nil
}

func (a *asker) say(text string) {
	fmt.Fprintln(a.console.Stream(a.f.Err), untrusted.Line(text, 1024))
}

// showCommands prints how a request is decided.
func showCommands(out io.Writer, run *v1alpha1.Run, r *v1alpha1.PendingRequest) {
	fmt.Fprintln(out, "  To decide: "+commandFor(run, r))
	if r.Kind == requests.KindApproval {
		fmt.Fprintln(out, "  To refuse: "+requests.Command("deny", run, r.ID))
	}
}

// commandFor returns the command that decides a request.
func commandFor(run *v1alpha1.Run, r *v1alpha1.PendingRequest) string {
	switch r.Kind {
	case requests.KindQuestion:
		return requests.Command("answer", run, r.ID+" "+valueHint(r.Schema))
	case requests.KindLimit:
		return requests.Command("grant", run, r.ID) + " " + grantExample(r.ID)
	}
	if hint := valueHint(r.Schema); r.Schema != "" && hint == "NAME=VALUE..." {
		return requests.Command("approve", run, r.ID+" "+hint)
	}
	if r.Schema != "" {
		return requests.Command("approve", run, r.ID) + " --value JSON"
	}
	return requests.Command("approve", run, r.ID)
}

// valueHint describes how to write the value for a schema. It does not contain names of the schema: a model chose
// these, and users copy the command into a shell.
func valueHint(schema string) string {
	f, isForm := requests.FormOf(schema)
	switch {
	case schema == "" || f.Single:
		return "TEXT"
	case isForm:
		return "NAME=VALUE..."
	}
	return "JSON"
}

// grantExample returns the flag that raises the limit of a request, with an example of a value.
func grantExample(request string) string {
	limit, example := decisions.Grantable(request)
	return "--" + limit + " " + example
}
