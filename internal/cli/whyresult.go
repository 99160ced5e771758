package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/cli/transcript"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// printResult prints the output of a Run and its changes.
func (e explainer) printResult(run *v1alpha1.Run) {
	result := progressOf(run).Result
	if result == nil {
		return
	}
	terminal.Block(e.Out, "Warning", result.Warning)
	terminal.Block(e.Out, "Result", result.Text)
	terminal.Block(e.Out, "Output", terminal.IndentedJSON(result.Output))
	if p := result.Published; p != nil {
		terminal.Field(e.Out, "Branch", p.Branch)
		terminal.Field(e.Out, "Commit", p.Commit)
	}
	terminal.Block(e.Out, "Changed files", fileList(result.Files))
}

// fileList returns the files, one on each line.
func fileList(files []v1alpha1.File) string {
	var lines []string
	for _, f := range files {
		lines = append(lines, untrusted.Line(f.Path, 256)+" ("+size(f.Size)+")")
	}
	return strings.Join(lines, "\n")
}

// printDecisions prints who made the Decisions that the Run acted on. The Run reports the names of the Decisions; their
// authors are in the Decisions, where an admission policy checks them.
func (e explainer) printDecisions(ctx context.Context, c client.Client, run *v1alpha1.Run) {
	t, found := newTable(e.Out, "DECISION", "REQUEST", "BY", "REASON"), false
	for _, done := range progressOf(run).Decided {
		if done.Name == "" || done.Refused != "" {
			continue
		}
		d, err := decisionOn(ctx, c, run, done)
		switch {
		case apierrors.IsNotFound(err):
			t.row(string(done.Type), done.Request, "unknown: Decision "+done.Name+" was deleted", "")
		case err != nil:
			fmt.Fprintln(e.Err, "Decisions are not shown: "+explain(err))
			return
		default:
			t.row(string(d.Spec.Type), done.Request, author(run, d), d.Spec.Reason)
		}
		found = true
	}
	if found {
		fmt.Fprintln(e.Out, "Decisions:")
		_ = t.print()
	}
}

// author names the author of a Decision, and the Run that it was for if a retry of that Run reuses it.
func author(run *v1alpha1.Run, d *v1alpha1.Decision) string {
	if d.Spec.Run != run.Name {
		return d.Spec.By + ", for Run " + d.Spec.Run
	}
	return d.Spec.By
}

// decisionOn returns a Decision that a Run reports. A Decision that is younger than the end of the Run, or about
// another Run whose approval this one does not reuse, has taken the name of a deleted one and does not count.
func decisionOn(ctx context.Context, c client.Client, run *v1alpha1.Run, done v1alpha1.DecidedRequest) (*v1alpha1.Decision, error) {
	d := &v1alpha1.Decision{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: done.Name}, d); err != nil {
		return nil, err
	}
	late := run.Status.CompletionTime != nil && run.Status.CompletionTime.Before(&d.CreationTimestamp)
	isOwn := d.Spec.Run == run.Name && !d.CreationTimestamp.Before(&run.CreationTimestamp)
	if late || !isOwn && !decisions.ProvesReuse(run, d, done) || done.Type != "" && done.Type != d.Spec.Type {
		return nil, apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("decisions").GroupResource(), done.Name)
	}
	return d, nil
}

// printRefused prints which tool calls of the Run were denied, and which connections of its commands were refused.
func (e explainer) printRefused(run *v1alpha1.Run, rules denyingRules) {
	refused := progressOf(run).Refused
	if refused == nil {
		return
	}
	e.printDenied(refused, rules)
	if refused.Connections == 0 {
		return
	}
	fmt.Fprintf(e.Out, "Refused connections of commands: %d\n", refused.Connections)
	t := newTable(e.Out, "HOST", "COUNT", "FIRST", "WHY")
	listed := int64(0)
	for _, h := range refused.Hosts {
		listed += h.Count
		t.row(hostPort(h), strconv.FormatInt(h.Count, 10), string(h.FirstID), whyRefused(h.Reason))
	}
	_ = t.print()
	if more := refused.Connections - listed; more > 0 {
		fmt.Fprintf(e.Out, "%d more were to other hosts, or to names that are not valid: see the events host.refused in the log\n", more)
	}
	if run.Spec.Agent != "" {
		fmt.Fprintf(e.Out, "To allow hosts: %s\n", requests.CommandAbout("hosts", client.ObjectKey{Namespace: run.Namespace, Name: run.Spec.Agent}))
	}
}

func hostPort(h v1alpha1.RefusedHost) string {
	return net.JoinHostPort(h.Host, strconv.Itoa(int(h.Port)))
}

func whyRefused(reason v1alpha1.RefusedReason) string {
	switch reason {
	case v1alpha1.RefusedNotListed:
		return "not in sandbox.egress.hosts of the Agent"
	case v1alpha1.RefusedNotPublic:
		return "leads to no public address"
	}
	return string(reason)
}

// printDenied prints the tools whose calls were denied.
func (e explainer) printDenied(refused *v1alpha1.Refused, rules denyingRules) {
	if refused.ToolCalls == 0 {
		return
	}
	fmt.Fprintf(e.Out, "Denied tool calls: %d\n", refused.ToolCalls)
	t := newTable(e.Out, "TOOL", "COUNT", "FIRST", "DENIED BY")
	listed := int64(0)
	for _, d := range refused.Tools {
		listed += d.Count
		t.row(d.Name, strconv.FormatInt(d.Count, 10), string(d.FirstID), deniedBy(d.By, rules[deniedTool{d.Name, d.By}]))
	}
	_ = t.print()
	if more := refused.ToolCalls - listed; more > 0 {
		fmt.Fprintf(e.Out, "%d more were calls of other tools: see the events call.denied in the log\n", more)
	}
}

// deniedBy describes what denied calls. The rules or hooks are known if a log has them.
func deniedBy(by v1alpha1.DeniedBy, rules []string) string {
	names := strings.Join(rules, ", ")
	switch by {
	case v1alpha1.DeniedByPolicy:
		if names != "" {
			return "policy rule " + names
		}
		return "a policy rule"
	case v1alpha1.DeniedByApprover:
		return "a user"
	case v1alpha1.DeniedByTimeout:
		return "no user decided"
	case v1alpha1.DeniedByHook:
		if names != "" {
			return "hook " + names
		}
		return "a hook"
	}
	return string(by)
}

// denyingRules are the rules, or hooks, that denied calls, by tool and by what denied them. The
// status has no room for them, so they are read from the logs of the pods that still exist.
type denyingRules map[deniedTool][]string

// A deniedTool is the name of a tool in the status, with what denied its calls.
type deniedTool struct {
	name string
	by   v1alpha1.DeniedBy
}

// Add implements transcript.Sink.
func (r denyingRules) Add(e transcript.Entry) {
	d, is := e.Fact.(events.CallDenied)
	if !is || d.Rule == "" {
		return
	}
	key := deniedTool{task.Cut(d.Name, task.MaxTool), v1alpha1.DeniedBy(d.By)}
	if !slices.Contains(r[key], d.Rule) {
		r[key] = append(r[key], d.Rule)
	}
}

// readDenyingRules reads which rules denied calls of a Run, for at most logTimeout. Logs that cannot be read are
// skipped.
func readDenyingRules(ctx context.Context, pods *podReader, run *v1alpha1.Run, own []corev1.Pod) denyingRules {
	rules := denyingRules{}
	refused := progressOf(run).Refused
	hasRules := func(d v1alpha1.DeniedTool) bool {
		return d.By == v1alpha1.DeniedByPolicy || d.By == v1alpha1.DeniedByHook
	}
	if refused == nil || !slices.ContainsFunc(refused.Tools, hasRules) {
		return rules
	}
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	reader := transcript.NewReader(transcript.Options{Sink: rules})
	for i := range own {
		log, err := pods.openLog(ctx, &own[i], &corev1.PodLogOptions{Container: runnerContainer})
		if err != nil {
			continue
		}
		_, _ = io.Copy(reader, log) // what was read before an error counts
		_ = log.Close()
		reader.EndLog()
	}
	return rules
}
