package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A decision is the user's intended Decision on a request of a Run.
type decision struct {
	run     string
	request string // empty: the only open request of the kind
	kind    string // of requests that it decides
	yes     bool   // do not ask
	// values are the arguments with the value: one text, or NAME=VALUE of a form.
	values []string
	// asks is whether the user is asked for the value.
	asks bool
	spec v1alpha1.DecisionSpec
}

// A decider makes Decisions and waits until they are applied.
type decider struct{ *Factory }

// decide shows the request, asks the user, and creates the Decision. The digest comes from the shown request, which is
// not read again.
func (d decider) decide(ctx context.Context, want decision) error {
	if want.yes && want.request == "" {
		namespace, err := d.Namespace()
		if err != nil {
			return err
		}
		return exit.Usagef("--yes needs the id of the request, because you have not seen it: list the ids with %s", requests.CommandAbout("pending", client.ObjectKey{Namespace: namespace, Name: want.run}))
	}
	c, err := d.Client()
	if err != nil {
		return err
	}
	run, err := d.findRun(ctx, c, want.run)
	if err != nil {
		return err
	}
	want = want.named(run)
	request, err := chooseRequest(run, want)
	if err != nil {
		return err
	}
	if err := d.takeValue(&want, request); err != nil {
		return err
	}
	if err := fill(ctx, c, request, &want.spec); err != nil {
		return err
	}
	want.spec.Run = run.Name
	return d.decideRequest(ctx, c, decidedRequest{run, request, want})
}

// A decidedRequest is a request of a Run with the intended Decision on it.
type decidedRequest struct {
	run     *v1alpha1.Run
	request *v1alpha1.PendingRequest
	decision
}

// decideRequest shows the request, asks the user, and creates the Decision.
func (d decider) decideRequest(ctx context.Context, c client.Client, want decidedRequest) error {
	run, request := want.run, want.request
	shown := request
	if want.asks {
		shown = withoutForm(request)
	}
	if unread := podReaderOf(d.Factory, c).showWhole(ctx, d.Factory, run, shown); !want.mayBeMade(unread) {
		return notShownWhole(run, request, unread)
	}
	check := func() error { return checkOpen(ctx, c, run, request) }
	lines := d.NewLineReader()
	if want.asks {
		read := func(question string) (string, error) { return lines.Read(ctx, question, check) }
		value, err := readValue(d.Err, read, request, want.spec)
		if err != nil || value == "" {
			return d.undecided(run, err)
		}
		want.spec.Value = value
	}
	want.yes = want.yes || want.asks && want.spec.Type == v1alpha1.DecisionAnswer // who typed the answer agrees
	if agreed, err := d.agree(ctx, want, check); err != nil || !agreed {
		return err
	}
	made, err := d.createDecision(ctx, c, run.Namespace, want.spec)
	if err != nil {
		return err
	}
	return d.awaitApplied(ctx, c, made)
}

// named returns the decision to answer with its only value moved to the request, if that value is the id of an open
// question and not an answer.
func (d decision) named(run *v1alpha1.Run) decision {
	if d.spec.Type != v1alpha1.DecisionAnswer || d.request != "" || len(d.values) != 1 {
		return d
	}
	for _, r := range openRequests(run) {
		if r.Kind == d.kind && r.ID == d.values[0] {
			d.request, d.values = r.ID, nil
			break
		}
	}
	return d
}

// takeValue sets the value from the command line. If there is none, it asks the user at the terminal.
func (d decider) takeValue(want *decision, r *v1alpha1.PendingRequest) error {
	isAnswer := want.spec.Type == v1alpha1.DecisionAnswer
	needsValue := isAnswer || want.spec.Type == v1alpha1.DecisionApprove && r.Schema != ""
	if want.asks = needsValue && len(want.values) == 0 && !want.yes && d.Interactive(); want.asks {
		return nil
	}
	if isAnswer && len(want.values) == 0 {
		return exit.Usagef("%s asks a question, and the answer is missing: write it behind the id", r.ID)
	}
	value, err := requests.ValueOf(r, want.values)
	if err != nil {
		return err
	}
	want.spec.Value = value
	return want.checkValue(r)
}

// withoutForm returns a request without the schema of a value that the user is asked for field by field.
func withoutForm(r *v1alpha1.PendingRequest) *v1alpha1.PendingRequest {
	if _, isForm := requests.FormOf(r.Schema); !isForm {
		return r
	}
	without := *r
	without.Schema = ""
	return &without
}

// readValue asks the user for the value of a request; empty: the user decides later.
func readValue(out io.Writer, read func(question string) (string, error), r *v1alpha1.PendingRequest, spec v1alpha1.DecisionSpec) (string, error) {
	ask := func() (string, error) {
		line, err := read("Answer as " + spec.By + " [Enter: answer later]: ")
		return strings.TrimSpace(line), err
	}
	if f, isForm := requests.FormOf(r.Schema); isForm {
		fmt.Fprintln(out, "You answer as "+spec.By+".")
		ask = func() (string, error) { return requests.FormAsker{Out: out, Read: read}.Ask(f) }
	}
	for {
		value, err := ask()
		if err != nil || value == "" {
			return "", err
		}
		spec.Value = value
		wrong := decisions.Misfit(*r, spec)
		if wrong == "" {
			return value, nil
		}
		fmt.Fprintln(out, untrusted.Line(wrong, task.MaxMessage))
		if value == requests.EmptyForm {
			return "", nil // the user left out all values
		}
	}
}

// undecided ends a command whose question has no answer.
func (d decider) undecided(run *v1alpha1.Run, err error) error {
	if err != nil {
		return fmt.Errorf("nothing was decided: %w. See what the Run asks with: %s", err, requests.Command("pending", run))
	}
	fmt.Fprintln(d.Err, "Nothing was decided")
	return nil
}

// checkValue returns an error if the value is not one for the request.
func (d decision) checkValue(r *v1alpha1.PendingRequest) error {
	if wrong := decisions.Misfit(*r, d.spec); wrong != "" {
		return exit.Usagef("nothing was decided: %s", untrusted.Line(wrong, task.MaxMessage))
	}
	return nil
}

// appliedLooks is how many times a command checks whether a Run has applied a Decision, at the interval of the Factory.
// A runner reads a Decision within two seconds, unless the Run has no pod at the moment.
const appliedLooks = 5

// awaitApplied waits for appliedLooks checks at most, and returns an error if the Run refuses the Decision until then.
func (d decider) awaitApplied(ctx context.Context, c client.Client, made *v1alpha1.Decision) error {
	for range appliedLooks {
		timer := time.NewTimer(d.Interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil // it is made
		case <-timer.C:
		}
		switch applied := appliedOf(ctx, c, made); applied.Status {
		case metav1.ConditionFalse:
			return fmt.Errorf("run %s refused Decision %s: %s", made.Spec.Run, made.Name, untrusted.Line(applied.Message, task.MaxMessage))
		case metav1.ConditionTrue:
			return nil
		default: // not yet
		}
	}
	fmt.Fprintf(d.Err, "Run %s has not read it yet. To see what it does with it: kubectl get decision %s -o wide -n %s\n", made.Spec.Run, made.Name, made.Namespace)
	return nil
}

// mayBeMade reports whether a Decision is possible on a request that was not shown completely: a denial, or with --yes
// an approval of arguments that the user read elsewhere.
func (d decision) mayBeMade(unread error) bool {
	if unread == nil || d.spec.Type != v1alpha1.DecisionApprove {
		return true
	}
	return d.yes && !errors.Is(unread, errForged)
}

// appliedOf returns the condition Applied of a Decision; empty: there is none, or it cannot be read.
func appliedOf(ctx context.Context, c client.Client, made *v1alpha1.Decision) metav1.Condition {
	var d v1alpha1.Decision
	if c.Get(ctx, client.ObjectKeyFromObject(made), &d) != nil {
		return metav1.Condition{}
	}
	if applied := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionApplied); applied != nil {
		return *applied
	}
	return metav1.Condition{}
}

// chooseRequest returns the open request of an id, or the only one of a kind.
func chooseRequest(run *v1alpha1.Run, d decision) (*v1alpha1.PendingRequest, error) {
	if run.Status.CompletionTime != nil {
		return nil, fmt.Errorf("run %s has ended (%s) and takes no Decisions: create another Run", run.Name, reason(run))
	}
	var found []v1alpha1.PendingRequest
	var ids, others []string
	for _, r := range openRequests(run) {
		switch {
		case r.Kind != d.kind:
			if d.request == "" || d.request == r.ID {
				others = append(others, r.ID+": "+commandFor(run, &r))
			}
			continue
		case d.request == "" || d.request == r.ID:
			found = append(found, r)
		}
		ids = append(ids, r.ID)
	}
	switch {
	case len(found) == 1:
		return &found[0], nil
	case len(found) > 1:
		return nil, exit.Usagef("run %s has several open requests: name one of %s behind the name of the Run", run.Name, strings.Join(ids, ", "))
	case len(others) > 0:
		return nil, fmt.Errorf("run %s has no open request of kind %s. To decide %s", run.Name, d.kind, strings.Join(others, "; to decide "))
	case len(ids) > 0:
		return nil, fmt.Errorf("run %s has no open request %s of kind %s, but: %s", run.Name, d.request, d.kind, strings.Join(ids, ", "))
	}
	return nil, fmt.Errorf("run %s has no open request of kind %s: see what it asks with %s", run.Name, d.kind, requests.Command("pending", run))
}

// fill sets the author of the Decision, and the fields that bind it to the request.
func fill(ctx context.Context, c client.Client, r *v1alpha1.PendingRequest, spec *v1alpha1.DecisionSpec) error {
	user, err := whoAmI(ctx, c)
	if err != nil {
		return err
	}
	spec.By, spec.Request = user.Username, r.ID
	if spec.Type == v1alpha1.DecisionApprove {
		spec.Digest = r.Digest
	}
	if r.Approvers == nil {
		return nil
	}
	for _, group := range r.Approvers.Groups {
		if slices.Contains(user.Groups, group) {
			spec.Groups = append(spec.Groups, group)
		}
	}
	if !r.Approvers.Include(spec.By, spec.Groups) {
		return fmt.Errorf("request %s can be decided only by %s, and you (%s) are in %s: ask one of them, or choose another user with --context",
			r.ID, untrusted.Line(decisions.ApproverNames(r.Approvers), 1024), user.Username, strings.Join(user.Groups, ", "))
	}
	return nil
}

// agree asks the user, unless --yes names this request. It ends with an error of check, which is called repeatedly.
func (d decider) agree(ctx context.Context, want decidedRequest, check func() error) (bool, error) {
	if want.yes {
		return true, nil
	}
	if !d.Interactive() {
		return false, exit.Usagef("there is no terminal to ask you: if you agree with the request that is shown, add its id %s behind the name of the Run, and --yes", untrusted.Line(want.request.ID, 80))
	}
	agreed, err := d.Confirm(ctx, describe(want.spec)+" as "+want.spec.By+"?", check)
	if err != nil || !agreed {
		return false, d.undecided(want.run, err)
	}
	return true, nil
}

// describe describes the effect of a Decision on a request.
func describe(spec v1alpha1.DecisionSpec) string {
	text := string(spec.Type) + " this request"
	if spec.Scope == v1alpha1.ScopeRun {
		text = string(spec.Type) + " every call of this tool that the same rule asks about"
	}
	if g := spec.Grant; g != nil {
		var added []string
		if g.Steps != nil {
			added = append(added, terminal.Plural(*g.Steps, "step"))
		}
		if g.Tokens != nil {
			added = append(added, string(*g.Tokens)+" tokens")
		}
		if g.Cost != nil {
			added = append(added, string(*g.Cost))
		}
		text = "Add " + strings.Join(added, ", ")
	}
	return text
}

// errDecidedElsewhere ends a question to the user.
var errDecidedElsewhere = errors.New("the request is not open any more")

// checkOpen returns an error if the request is not open any more. A server that fails for a time
// does not withdraw the question.
func checkOpen(ctx context.Context, c client.Client, run *v1alpha1.Run, r *v1alpha1.PendingRequest) error {
	var now v1alpha1.Run
	err := c.Get(ctx, client.ObjectKeyFromObject(run), &now)
	switch {
	case isUnreachable(err), isServerError(err):
		return nil
	case err != nil:
		return whileWatched(run, err)
	case now.UID != run.UID:
		return errReplaced(run)
	}
	for _, open := range openRequests(&now) {
		if open.ID == r.ID && open.Digest == r.Digest && open.Question == r.Question && open.Schema == r.Schema {
			return nil
		}
	}
	return errDecidedElsewhere
}

// createDecision creates a Decision with the first free name. A used name is used again only if the Run refused the
// Decision that has it.
func (d decider) createDecision(ctx context.Context, c client.Client, namespace string, spec v1alpha1.DecisionSpec) (*v1alpha1.Decision, error) {
	const most = 999
	name := spec.Run + "." + spec.Request
	for n := 2; n <= most+1; n++ {
		made := &v1alpha1.Decision{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec}
		err := c.Create(ctx, made)
		if err == nil {
			return made, d.printCreated(made)
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
		if err := refused(ctx, c, client.ObjectKeyFromObject(made)); err != nil {
			return nil, err
		}
		name = spec.Run + "." + spec.Request + "." + strconv.Itoa(n)
	}
	return nil, fmt.Errorf("run %s refused %d Decisions for request %s: see kubectl get decisions -n %s", spec.Run, most, spec.Request, namespace)
}

// refused returns an error unless the Run refused the Decision.
func refused(ctx context.Context, c client.Client, key client.ObjectKey) error {
	var d v1alpha1.Decision
	if err := c.Get(ctx, key, &d); err != nil {
		return err
	}
	if meta.IsStatusConditionFalse(d.Status.Conditions, v1alpha1.ConditionApplied) {
		return nil
	}
	return fmt.Errorf("%s already decided this request: Decision %s, type %s. See what the Run does with it: %s",
		untrusted.Line(d.Spec.By, 512), d.Name, d.Spec.Type, requests.CommandAbout("why", client.ObjectKey{Namespace: d.Namespace, Name: d.Spec.Run}))
}

func (d decider) printCreated(made *v1alpha1.Decision) error {
	fmt.Fprintf(d.Out, "decision.deckhand.dev/%s created\n", made.Name)
	return nil
}

// whoAmI returns the name and the groups of the user, according to the API server.
func whoAmI(ctx context.Context, c client.Client) (authenticationv1.UserInfo, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return authenticationv1.UserInfo{}, fmt.Errorf("asking the API server who you are: %w", err)
	}
	return review.Status.UserInfo, nil
}

// bindYes adds the flags of all commands that decide a request.
func bindYes(c *cobra.Command, d *decision) {
	c.Flags().BoolVarP(&d.yes, "yes", "y", false, "Do not ask; needs the id of the request")
	c.Flags().StringVar(&d.spec.Reason, "reason", "", "Why you decide so; the agent reads the reason of a denial")
}
