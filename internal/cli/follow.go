package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/conversation"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/runner/events"
)

// maxStreams is how many logs are followed at the same time. The logs of other Runs are printed later, the oldest
// first.
const maxStreams = 8

// A follower prints the conversations of a Run and of its child Runs.
type follower struct {
	f      *Factory
	o      logsOptions
	client client.Client
	open   logOpener
	key    client.ObjectKey
	// out is where conversations are printed.
	out     io.Writer
	options conversation.Options
	console terminal.Console
	// asker asks the user the requests of Runs; nil: requests are only printed.
	asker *asker
	// root is the Run when it was last read; nil: it is not known to exist.
	root *v1alpha1.Run

	// started are the Runs whose conversations are begun, and the nodes that were printed.
	started map[types.UID]bool
	active  int
	ended   chan endedLog
	// waiting is the last message about a wait, for example for a pod.
	waiting string
}

// An endedLog marks that the conversation of a Run was printed.
type endedLog struct {
	name string
	root bool
	err  error
}

// newFollower returns a follower of the Run of a name.
func (f *Factory) newFollower(name string, o logsOptions, out io.Writer) (*follower, error) {
	name, err := runName(name)
	if err != nil {
		return nil, err
	}
	c, open, err := f.logClients()
	if err != nil {
		return nil, err
	}
	namespace, err := f.Namespace()
	if err != nil {
		return nil, err
	}
	options, err := terminal.ConversationOptions(o.window.ConversationFlags, out)
	if err != nil {
		return nil, err
	}
	w := &follower{
		f: f, o: o, client: c, open: open, key: client.ObjectKey{Namespace: namespace, Name: name}, out: options.Out, options: options,
		started: map[types.UID]bool{}, ended: make(chan endedLog),
	}
	if o.follow && !o.window.JSON {
		w.console.Status = terminal.NewStatusLine(&f.Streams)
	}
	return w, nil
}

// read prints conversations until all of them are printed, and with --follow until the Run has ended. It returns the
// Run when it was last read.
func (f *follower) read(ctx context.Context) (*v1alpha1.Run, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		for ; f.active > 0; f.active-- {
			<-f.ended
		}
		f.console.SetStatus("")
	}()
	for {
		tree, err := f.readTree(ctx)
		if err == nil {
			f.sayChain(tree[0].Run)
			f.root = tree[0].Run
			f.start(ctx, tree)
			err = f.ask(ctx, tree)
		}
		switch {
		case err != nil && (f.root == nil || !f.continues(ctx, f.root.Name, err)):
			return f.root, f.cause(ctx, f.root, err)
		case err == nil && f.isRead(tree):
			f.printWorkflowEnd(f.root)
			return f.root, nil
		}
		if err := f.idle(ctx); err != nil {
			return f.root, err
		}
	}
}

// readTree reads the Run and its child Runs. If another Run has taken the name of the watched one, it returns an error.
func (f *follower) readTree(ctx context.Context) ([]treeRun, error) {
	tree, err := readTree(ctx, f.client, f.key)
	if err == nil && f.root != nil && f.root.UID != tree[0].UID {
		return nil, errReplaced(f.root)
	}
	return tree, err
}

// sayChain prints once which Runs the watched one continues, and where their conversation is. A user who has just
// created the Run knows that.
func (f *follower) sayChain(run *v1alpha1.Run) {
	names := chainOf(run)
	if f.root != nil || f.asker != nil || len(names) == 0 {
		return
	}
	before := client.ObjectKey{Namespace: run.Namespace, Name: names[0]}
	f.say("Run " + run.Name + " continues " + chainText(run) + ". The conversation before it: " + requests.CommandAbout("logs", before))
}

// start begins further conversations, as many as may be open.
func (f *follower) start(ctx context.Context, tree []treeRun) {
	most := maxStreams
	if !f.o.follow {
		most = 1
	}
	for _, run := range inNodeOrder(tree) {
		if run.node != nil {
			f.printNode(ctx, run)
			continue
		}
		if f.started[run.UID] || run.Spec.Workflow != "" || f.active >= most {
			continue
		}
		f.started[run.UID] = true
		f.active++
		reader := f.reader(ctx, run.treeRun)
		go func() {
			err := reader.read(ctx)
			if closeErr := reader.printer.Close(); err == nil {
				err = closeErr
			}
			f.ended <- endedLog{name: run.Name, root: run.depth == 0, err: err}
		}()
	}
	if root := tree[0].Run; f.active == 0 && f.o.follow && !isFinished(root) {
		f.sayState(root)
	}
}

// sayState prints what a Run without a conversation waits for. A request is printed once; if there is an asker, the
// asker prints it.
func (f *follower) sayState(run *v1alpha1.Run) {
	open, text := openRequests(run), "Run "+run.Name+": "+briefMessage(run)
	switch {
	case len(open) > 0 && f.asker != nil:
		return
	case len(open) > 0:
		text += " To decide: " + commandFor(run, &open[0])
	}
	f.say(text)
}

func (f *follower) reader(ctx context.Context, run treeRun) *logReader {
	options, prefix := f.options, ""
	if run.depth > 0 {
		prefix = "[" + run.path + "] "
	}
	out := f.console.Stream(f.out)
	options.Out, options.Prefix = out, prefix
	r := &logReader{
		f: f.f, o: f.o, client: f.client, key: client.ObjectKeyFromObject(run.Run),
		out: out, err: f.console.Stream(f.f.Err), prefix: prefix,
		saysEnd: run.depth > 0 || f.asker == nil, last: run.Run, known: map[int]bool{},
	}
	options.NamesRequests = f.asker != nil && f.f.Interactive()
	options.Check = func(p events.Pending) string { return r.checkRequest(ctx, p) }
	r.printer, r.pods = conversation.New(options), newPodReader(f.client, f.open, r.say)
	return r
}

// isRead reports whether all conversations are printed, and no more follow.
func (f *follower) isRead(tree []treeRun) bool {
	for _, run := range tree {
		if !f.started[run.UID] && run.Spec.Workflow == "" {
			return false
		}
	}
	return f.active == 0 && (!f.o.follow || isFinished(tree[0].Run))
}

// idle waits for the end of a conversation, or for the next look at the Runs.
func (f *follower) idle(ctx context.Context) error {
	if f.root != nil {
		f.console.SetStatus(statusText(f.root, f.f.Now()))
	}
	timer := time.NewTimer(f.f.Interval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	case ended := <-f.ended:
		f.active--
		if ended.err != nil && !ended.root {
			f.say("The log of Run " + ended.name + " is left out: " + explain(ended.err))
			return nil
		}
		return ended.err
	}
}

// continues reports whether a Run is watched although a request failed.
func (f *follower) continues(ctx context.Context, name string, err error) bool {
	if !f.o.follow || ctx.Err() != nil || !isUnreachable(err) && !isServerError(err) {
		return false
	}
	f.say("Cannot read Run " + name + " and tries again: " + explain(err))
	return true
}

// cause returns err with a better message if the Run never existed, or was deleted while it was watched.
func (f *follower) cause(ctx context.Context, run *v1alpha1.Run, err error) error {
	if run == nil && apierrors.IsNotFound(err) && !isNotInstalled(err) {
		return notFound(ctx, f.client, "Run", f.key)
	}
	return whileWatched(run, err)
}

// whileWatched returns the error of a Run that was deleted while it was watched.
func whileWatched(run *v1alpha1.Run, err error) error {
	if run != nil && apierrors.IsNotFound(err) {
		return fmt.Errorf("run %s was deleted while it was watched. List Runs with: kubectl deckhand list -n %s", run.Name, run.Namespace)
	}
	return err
}

// errReplaced returns the error of a Run that was deleted while it was watched, and whose name another
// Run has now.
func errReplaced(run *v1alpha1.Run) error {
	return fmt.Errorf("run %s was deleted while it was watched, and another Run has its name now. To watch that: %s", run.Name, requests.Command("logs -f", run))
}

func (f *follower) ask(ctx context.Context, tree []treeRun) error {
	if f.asker == nil {
		return nil
	}
	for _, run := range tree {
		if err := f.asker.ask(ctx, run.Run); err != nil {
			return err
		}
	}
	return nil
}

// say prints a message outside of conversations, once.
func (f *follower) say(text string) {
	if f.waiting != text {
		f.waiting = text
		fmt.Fprintln(f.console.Stream(f.f.Err), untrusted.Line(text, 1024))
	}
}

// statusText returns the state of a Run: state, step, tokens, cost and age.
func statusText(run *v1alpha1.Run, now time.Time) string {
	p := progressOf(run)
	parts := []string{reason(run)}
	switch {
	case run.Spec.Workflow != "":
		over := 0
		for i := range run.Status.Nodes {
			if s := run.Status.Nodes[i].State; s != v1alpha1.NodeWaiting && s != v1alpha1.NodeRunning {
				over++
			}
		}
		parts = append(parts, fmt.Sprintf("%d of %s", over, terminal.Plural(len(run.Status.Nodes), "node")))
	case p.Step != nil:
		parts = append(parts, stepText(run, now))
	}
	if p.Usage.TotalTokens > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", p.Usage.TotalTokens))
	}
	if p.Usage.Cost != "" {
		parts = append(parts, p.Usage.Cost)
	}
	return untrusted.Line(strings.Join(append(parts, elapsed(run.CreationTimestamp, now)), " · "), 400)
}

// stepText returns the current step of an agent, and for how long it has taken.
func stepText(run *v1alpha1.Run, now time.Time) string {
	step := progressOf(run).Step
	text := step.Name
	if step.ID != "" { // an older runner reports none
		text = fmt.Sprintf("step %s, %s", step.ID, text)
	}
	if reason(run) == v1alpha1.ReasonRunning && step.StartedAt != nil {
		text += " " + elapsed(*step.StartedAt, now)
	}
	return text
}

// elapsed returns the time since then, in seconds. The clocks of cluster and user may differ.
func elapsed(then metav1.Time, now time.Time) string {
	return terminal.Took(now.Add(-max(now.Sub(then.Time), 0)), now)
}
