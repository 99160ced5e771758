package ready

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/refs/cached"
)

// RunsByModel is the name of the index of Runs by the Models in their reports.
const RunsByModel = "by-model"

// The keys of the index are names of Models with one of these prefixes.
const (
	waitsFor   = "waits-for/"
	answeredBy = "answered-by/"
)

// IndexRunByModel returns the keys of a Run in the index RunsByModel.
func IndexRunByModel(o client.Object) []string {
	waits, answered := reportsOf(o)
	var out []string
	if waits != "" {
		out = append(out, waitsFor+waits)
	}
	if answered != "" {
		out = append(out, answeredBy+answered)
	}
	return out
}

// reportsOf returns two names of Models: the Model for which a Run waits or gave up waiting, and the Model that
// answered it last.
func reportsOf(o client.Object) (waits, answered string) {
	run, is := o.(*v1alpha1.Run)
	if !is || run.Status.Progress == nil {
		return "", ""
	}
	p := run.Status.Progress
	if w := p.ModelWait; w != nil && (run.Status.CompletionTime == nil || p.Result != nil && p.Result.Reason == v1alpha1.ReasonModelUnavailable) {
		waits = w.Model
	}
	if p.AnsweredAt != nil {
		answered = p.Model
	}
	return waits, answered
}

func runsByModel(ctx context.Context, c client.Reader, namespace, value string) ([]v1alpha1.Run, error) {
	var runs v1alpha1.RunList
	err := c.List(ctx, &runs, client.InNamespace(namespace), client.MatchingFields{RunsByModel: value}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing Runs: %w", err)
	}
	return runs.Items, nil
}

// modelReported passes on events of a Run whose report about a Model changed, but not for each answer or each try of a
// wait.
var modelReported = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool { return modelReport(e.ObjectOld) != modelReport(e.ObjectNew) },
	DeleteFunc: func(e event.DeleteEvent) bool {
		waits, _ := reportsOf(e.Object)
		return waits != ""
	},
}

func modelReport(o client.Object) string {
	waits, answered := reportsOf(o)
	finished := false
	if run, is := o.(*v1alpha1.Run); is && waits != "" {
		finished = run.Status.CompletionTime != nil
	}
	return fmt.Sprint(waits, " ", finished, " ", answered)
}

// modelsReportedBy returns the Models that a report of a Run can be about.
func modelsReportedBy(ctx context.Context, c client.Reader, run client.Object) ([]string, error) {
	waits, answered := reportsOf(run)
	var out []string
	if answered != "" {
		out = append(out, answered)
	}
	if waits == "" {
		return out, nil
	}
	users, _, err := cached.UsersOfModel(ctx, c, run.GetNamespace(), waits)
	return append(out, users...), err
}
