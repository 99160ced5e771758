package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
func (w *follower) read(ctx context.Context) (*v1alpha1.Run, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		for ; w.active > 0; w.active-- {
			<-w.ended
		}
		w.console.SetStatus("")
	}()
	for {
		tree, err := w.readTree(ctx)
		if err == nil {
			w.root = tree[0].Run
			w.start(ctx, tree)
			err = w.ask(ctx, tree)
		}
		switch {
		case err != nil && (w.root == nil || !w.continues(ctx, w.root.Name, err)):
			return w.root, w.cause(ctx, w.root, err)
		case err == nil && w.isRead(tree):
			w.printWorkflowEnd(w.root)
			return w.root, nil
		}
		if err := w.idle(ctx); err != nil {
			return w.root, err
		}
	}
}

// readTree reads the Run and its child Runs. If another Run has taken the name of the watched one, it returns an error.
func (w *follower) readTree(ctx context.Context) ([]treeRun, error) {
	tree, err := readTree(ctx, w.client, w.key)
	if err == nil && w.root != nil && w.root.UID != tree[0].UID {
		return nil, errReplaced(w.root)
	}
	return tree, err
}

// start begins further conversations, as many as may be open.
func (w *follower) start(ctx context.Context, tree []treeRun) {
	most := maxStreams
	if !w.o.follow {
		most = 1
	}
	for _, run := range inNodeOrder(tree) {
		if run.node != nil {
			w.printNode(ctx, run)
			continue
		}
		if w.started[run.UID] || run.Spec.Workflow != "" || w.active >= most {
			continue
		}
		w.started[run.UID] = true
		w.active++
		reader := w.reader(ctx, run.treeRun)
		go func() {
			err := reader.read(ctx)
			if closeErr := reader.printer.Close(); err == nil {
				err = closeErr
			}
			w.ended <- endedLog{name: run.Name, root: run.depth == 0, err: err}
		}()
	}
	if root := tree[0].Run; w.active == 0 && w.o.follow && !isFinished(root) {
		w.sayState(root)
	}
}

// sayState prints what a Run without a conversation waits for. A request is printed once; if there is an asker, the
// asker prints it.
func (w *follower) sayState(run *v1alpha1.Run) {
	open, text := openRequests(run), "Run "+run.Name+": "+briefMessage(run)
	switch {
	case len(open) > 0 && w.asker != nil:
		return
	case len(open) > 0:
		text += " To decide: " + commandFor(run, &open[0])
	}
	w.say(text)
}

func (w *follower) reader(ctx context.Context, run treeRun) *logReader {
	options, prefix := w.options, ""
	if run.depth > 0 {
		prefix = "[" + run.path + "] "
	}
	out := w.console.Stream(w.out)
	options.Out, options.Prefix = out, prefix
	r := &logReader{
		f: w.f, o: w.o, client: w.client, key: client.ObjectKeyFromObject(run.Run),
		out: out, err: w.console.Stream(w.f.Err), prefix: prefix,
		saysEnd: run.depth > 0 || w.asker == nil, last: run.Run, known: map[int]bool{},
	}
	options.NamesRequests = w.asker != nil && w.f.Interactive()
	options.Check = func(p events.Pending) string { return r.checkRequest(ctx, p) }
	r.printer, r.pods = conversation.New(options), newPodReader(w.client, w.open, r.say)
	return r
}

// isRead reports whether all conversations are printed, and no more follow.
func (w *follower) isRead(tree []treeRun) bool {
	for _, run := range tree {
		if !w.started[run.UID] && run.Spec.Workflow == "" {
			return false
		}
	}
	return w.active == 0 && (!w.o.follow || isFinished(tree[0].Run))
}

// idle waits for the end of a conversation, or for the next look at the Runs.
func (w *follower) idle(ctx context.Context) error {
	if w.root != nil {
		w.console.SetStatus(statusText(w.root, w.f.Now()))
	}
	timer := time.NewTimer(w.f.Interval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	case ended := <-w.ended:
		w.active--
		if ended.err != nil && !ended.root {
			w.say("The log of Run " + ended.name + " is left out: " + explain(ended.err))
			return nil
		}
		return ended.err
	}
}

// continues reports whether a Run is watched although a request failed.
func (w *follower) continues(ctx context.Context, name string, err error) bool {
	if !w.o.follow || ctx.Err() != nil || !isUnreachable(err) && !isServerError(err) {
		return false
	}
	w.say("Cannot read Run " + name + " and tries again: " + explain(err))
	return true
}

// cause returns err with a better message if the Run never existed, or was deleted while it was watched.
func (w *follower) cause(ctx context.Context, run *v1alpha1.Run, err error) error {
	if run == nil && apierrors.IsNotFound(err) && !isNotInstalled(err) {
		return notFound(ctx, w.client, "Run", w.key)
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

func (w *follower) ask(ctx context.Context, tree []treeRun) error {
	if w.asker == nil {
		return nil
	}
	for _, run := range tree {
		if err := w.asker.ask(ctx, run.Run); err != nil {
			return err
		}
	}
	return nil
}

// say prints a message outside of conversations, once.
func (w *follower) say(text string) {
	if w.waiting != text {
		w.waiting = text
		fmt.Fprintln(w.console.Stream(w.f.Err), untrusted.Line(text, 1024))
	}
}
