package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/cli/runflags"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
)

func newApprove(f *Factory) *cobra.Command {
	d := decision{kind: requests.KindApproval, spec: v1alpha1.DecisionSpec{Type: v1alpha1.DecisionApprove}}
	var scope, value string
	c := &cobra.Command{
		Use:   "approve RUN [REQUEST] [NAME=VALUE...]",
		Short: "Allow a tool call",
		Args:  arguments(1, maxDecisionArguments),
		RunE: func(c *cobra.Command, args []string) error {
			d.spec.Scope = v1alpha1.DecisionScope(scope)
			if !slices.Contains([]v1alpha1.DecisionScope{"", v1alpha1.ScopeCall, v1alpha1.ScopeRun}, d.spec.Scope) {
				return exit.Usagef("--scope %s: write %s or %s", scope, v1alpha1.ScopeCall, v1alpha1.ScopeRun)
			}
			named, values := splitValues(args)
			switch {
			case len(named) > 2:
				return exit.Usagef("%q is no value: write NAME=VALUE, or usage: %s", named[2], c.UseLine())
			case value != "" && len(values) > 0:
				return exit.Usagef("the value is given twice, with --value and as %s: leave out one of them", values[0])
			case value != "":
				values = []string{value}
			}
			d.values = values
			return decider{f}.decide(c.Context(), d.of(named))
		},
	}
	bindYes(c, &d)
	c.Flags().StringVar(&scope, "scope", "", "Call: this call; Run: every call of the tool that the same rule asks about")
	c.Flags().StringVar(&value, "value", "", "The value, if the request has a schema: JSON, or NAME=VALUE. At a terminal you are asked for it")
	return c
}

// maxDecisionArguments are a Run, a request, and as many values as a schema of 1 KiB can have.
const maxDecisionArguments = 66

// splitValues splits arguments into those before the first NAME=VALUE and the values.
func splitValues(args []string) (named, values []string) {
	at := slices.IndexFunc(args, func(arg string) bool { return strings.Contains(arg, "=") })
	if at < 0 {
		return args, nil
	}
	return args[:at], args[at:]
}

func newDeny(f *Factory) *cobra.Command {
	d := decision{kind: requests.KindApproval, spec: v1alpha1.DecisionSpec{Type: v1alpha1.DecisionDeny}}
	c := &cobra.Command{
		Use:   "deny RUN [REQUEST]",
		Short: "Refuse a tool call; the agent continues without it",
		Args:  arguments(1, 2),
		RunE:  func(c *cobra.Command, args []string) error { return decider{f}.decide(c.Context(), d.of(args)) },
	}
	bindYes(c, &d)
	return c
}

func newAnswer(f *Factory) *cobra.Command {
	d := decision{kind: requests.KindQuestion, spec: v1alpha1.DecisionSpec{Type: v1alpha1.DecisionAnswer}}
	c := &cobra.Command{
		Use:   "answer RUN [REQUEST] [TEXT | NAME=VALUE...]",
		Short: "Answer a question, at the terminal if there is no TEXT; TEXT is - to read the answer from standard input",
		Example: "  kubectl deckhand answer fix 'The branch main.'\n" +
			"  kubectl deckhand answer deploy env=staging replicas=2\n" +
			"  kubectl deckhand answer deploy",
		Args: arguments(1, maxDecisionArguments),
		RunE: func(c *cobra.Command, args []string) error {
			d := d.of(args[:1])
			if d.values = args[1:]; len(d.values) > 1 && !strings.Contains(d.values[0], "=") {
				d.request, d.values = d.values[0], d.values[1:]
			}
			if len(d.values) != 1 || d.values[0] != "-" {
				return decider{f}.decide(c.Context(), d)
			}
			if !d.yes {
				return exit.Usagef("standard input has the answer, so you cannot be asked: name the request, and add --yes")
			}
			value, err := f.Argument(c.Context(), "-")
			if err != nil {
				return err
			}
			d.values = []string{value}
			return decider{f}.decide(c.Context(), d)
		},
	}
	bindYes(c, &d)
	return c
}

func newGrant(f *Factory) *cobra.Command {
	d := decision{kind: requests.KindLimit, spec: v1alpha1.DecisionSpec{Type: v1alpha1.DecisionGrant}}
	var added runflags.Amounts
	c := &cobra.Command{
		Use:     "grant RUN [REQUEST] --steps|--tokens|--cost AMOUNT",
		Short:   "Raise a limit that a Run reached",
		Example: "  kubectl deckhand grant fix --steps 20\n  kubectl deckhand grant fix --cost 0.50USD",
		Args:    arguments(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if !added.AreGiven() {
				return exit.Usagef("say how much is added: --steps 20, --tokens 500k or --cost 0.50USD")
			}
			grant, err := added.Read()
			if err != nil {
				return err
			}
			d.spec.Grant = grant
			return decider{f}.decide(c.Context(), d.of(args))
		},
	}
	bindYes(c, &d)
	added.Bind(c.Flags(), "How many steps are added", "How many tokens are added, for example 500k", "Which amount is added, for example 0.50USD")
	return c
}

func newMessage(f *Factory) *cobra.Command {
	var images []string
	c := &cobra.Command{
		Use:   "message RUN TEXT",
		Short: "Send the agent a message, which it reads before its next turn; TEXT is - to read standard input",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 2 {
				return exit.Usagef("a message is one text, and these are %d words: write it in quotes", len(args)-1)
			}
			return arguments(2, 2)(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error { return f.message(c.Context(), args[0], args[1], images) },
	}
	c.Flags().StringArrayVar(&images, "image", nil, fmt.Sprintf(runflags.ImageUsage, "with the message"))
	return c
}

func (f *Factory) message(ctx context.Context, name, text string, images []string) error {
	value, err := f.Argument(ctx, text)
	if err != nil {
		return err
	}
	if strings.TrimSpace(value) == "" {
		return exit.Usagef("the message is empty: write the text behind the Run, or - to read standard input")
	}
	c, run, err := f.openRun(ctx, name)
	if err != nil {
		return err
	}
	if run.Status.CompletionTime != nil {
		return fmt.Errorf("run %s has ended (%s) and reads no messages: create another Run", run.Name, reason(run))
	}
	if run.Spec.Workflow != "" {
		return fmt.Errorf("run %s is of Workflow %s, which has no agent that could read a message: send it to the Run of a node. To see them: %s", run.Name, run.Spec.Workflow, requests.Command("tree", run))
	}
	user, err := whoAmI(ctx, c)
	if err != nil {
		return err
	}
	d := &v1alpha1.Decision{
		ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, GenerateName: run.Name + "-"},
		Spec:       v1alpha1.DecisionSpec{Run: run.Name, Type: v1alpha1.DecisionMessage, Value: value, Images: images, By: user.Username},
	}
	if err := c.Create(ctx, d); err != nil {
		return err
	}
	f.sayWhenRead(run, value)
	return decider{f}.printCreated(d)
}

// sayWhenRead prints how an open request affects a message: if it is the only open question and the message is a valid
// answer, the message answers it; with any other request the agent does not read the message until it continues. The
// runner decides this in questionFor of runner/internal/engine/approval/decisions.go.
func (f *Factory) sayWhenRead(run *v1alpha1.Run, message string) {
	open := openRequests(run)
	questions := slices.DeleteFunc(slices.Clone(open), func(r v1alpha1.PendingRequest) bool { return r.Kind != requests.KindQuestion })
	answer := v1alpha1.DecisionSpec{Type: v1alpha1.DecisionAnswer, Value: message}
	switch {
	case len(questions) == 1 && decisions.Misfit(questions[0], answer) == "":
		when := ""
		if !asksUsers(reason(run)) {
			when = " as soon as all of the Run waits, unless the agent takes a turn before"
		}
		fmt.Fprintf(f.Err, "Run %s asks the question %s, and the message answers it%s\n", run.Name, questions[0].ID, when)
	case len(open) == 1:
		fmt.Fprintf(f.Err, "Run %s reads messages after its request %s is decided: %s\n", run.Name, open[0].ID, commandFor(run, &open[0]))
	case len(open) > 1:
		fmt.Fprintf(f.Err, "Run %s reads messages after its requests are decided: %s\n", run.Name, requests.Command("pending", run))
	}
}

// of returns the decision about the Run, and the request if it is named.
func (d decision) of(args []string) decision {
	d.run = args[0]
	if len(args) > 1 {
		d.request = args[1]
	}
	return d
}
