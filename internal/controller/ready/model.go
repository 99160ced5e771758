package ready

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/revision/listprices"
	"github.com/deckhand-dev/deckhand/internal/revision/refs"
	"github.com/deckhand-dev/deckhand/internal/revision/refs/cached"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// reportDelay is how long reports about a Model are collected: in an outage all Runs report at the same time.
const reportDelay = 2 * time.Second

var models = kind[*v1alpha1.Model, modelRefs]{
	name:      "Model",
	newObject: func() *v1alpha1.Model { return new(v1alpha1.Model) },
	newList:   func() client.ObjectList { return new(v1alpha1.ModelList) },
	read:      readModel,
	check:     checkModel,
	status: func(m *v1alpha1.Model) statusFields {
		return statusFields{status: &m.Status, generation: &m.Status.ObservedGeneration, conditions: &m.Status.Conditions, prices: &m.Status.Prices, list: &m.Status.PriceSource}
	},
	watches: []watch{
		{&v1alpha1.Model{}, modelsUsingModel, specChanged, 0},
		{&v1alpha1.Run{}, modelsReportedBy, modelReported, reportDelay},
	},
}

// modelRefs are the Models that a Model refers to, directly or through others (with itself in a cycle), and the reports
// of Runs about it.
type modelRefs struct {
	fallbacks map[string]*v1alpha1.Model
	reports   modelReports
}

func readModel(ctx context.Context, c client.Reader, m *v1alpha1.Model) (modelRefs, error) {
	fallbacks, err := refs.OfModel(ctx, cached.Reader(c), m)
	if err != nil {
		return modelRefs{}, err
	}
	reports, err := readReports(ctx, c, m, fallbacks)
	return modelRefs{fallbacks, reports}, err
}

// checkModel checks what the schema cannot check, and the fallbacks.
func checkModel(m *v1alpha1.Model, r modelRefs, now time.Time) result {
	known, _ := listprices.Of(m.Spec) // an error is that of CheckModel
	condition, wake := reachable(m, r.reports, now)
	return result{
		ready: readyUnless(snapshot.CheckModel(m, r.fallbacks), "Valid; Runs check endpoint and Secret"+warnings(append(snapshot.ModelWarnings(m.Spec), priceWarnings(m.Spec)...))),
		more:  []metav1.Condition{condition}, prices: known.Source, list: known.List, wake: wake,
	}
}

// priceWarnings returns why the installation's list of prices is not used, for a Model without its own prices.
func priceWarnings(spec v1alpha1.ModelSpec) []string {
	problem := listprices.Problem()
	if problem == "" || spec.Prices != nil {
		return nil
	}
	return []string{"the list of prices of the installation is not used, and what was known before holds: " + task.Cut(problem, maxProblem)}
}

// maxProblem bounds how much of an error in the list of prices a message has, in bytes.
const maxProblem = 1024

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

// reachableInterval is how soon the reports about a Model that is not Reachable are read again. Answers to Runs that
// did not wait cause no event.
const reachableInterval = time.Minute

// modelReports are the reports of Runs about one Model.
type modelReports struct {
	// waits are the waits for the Model, including waits that Runs gave up: since when and why.
	waits []modelWait
	// answers has the time of the last answer to each Run.
	answers []modelAnswer
}

type modelAnswer struct{ created, at time.Time } // created: the Run

type modelWait struct {
	run     string
	created time.Time // the Run
	since   time.Time
	message string
	gaveUp  bool
}

// readReports reads the reports of Runs about a Model. A Run that waits for a fallback also waits for the Model with
// that fallback. If no Run waits, it only reads whether there is any answer.
func readReports(ctx context.Context, c client.Reader, m *v1alpha1.Model, fallbacks map[string]*v1alpha1.Model) (modelReports, error) {
	var r modelReports
	reader := reportReader{client: c, model: m, byHash: map[string]*task.Snapshot{}}
	names := append(slices.Collect(maps.Keys(fallbacks)), m.Name)
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		err := reader.each(ctx, waitsFor, name, func(run *v1alpha1.Run) { r.waits = append(r.waits, waitOf(run)) })
		if err != nil {
			return r, err
		}
	}
	if len(r.waits) == 0 && meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionReachable) {
		return r, nil
	}
	err := reader.each(ctx, answeredBy, m.Name, func(run *v1alpha1.Run) {
		r.answers = append(r.answers, modelAnswer{run.CreationTimestamp.Time, run.Status.Progress.AnsweredAt.Time})
	})
	return r, err
}

func waitOf(run *v1alpha1.Run) modelWait {
	w := run.Status.Progress.ModelWait
	return modelWait{
		run: run.Name, created: run.CreationTimestamp.Time, since: w.Since.Time, gaveUp: run.Status.CompletionTime != nil,
		message: strings.TrimRight(untrusted.Words(w.Message, task.MaxWarning), "."),
	}
}

// answeredAt returns the time of the Model's last answer; zero: not known.
func (m modelReports) answeredAt(now time.Time) (last time.Time) {
	for _, a := range m.answers {
		if untrusted.IsTime(a.at, a.created, now) && a.at.After(last) {
			last = a.at
		}
	}
	return last
}

// waitsAt returns the waits that began at a plausible time.
func (m modelReports) waitsAt(now time.Time) []modelWait {
	return slices.DeleteFunc(slices.Clone(m.waits), func(w modelWait) bool { return !untrusted.IsTime(w.since, w.created, now) })
}

// reachable returns the condition Reachable of a Model, and when to read the reports again.
func reachable(m *v1alpha1.Model, r modelReports, now time.Time) (metav1.Condition, time.Duration) {
	waits, answeredAt := r.waitsAt(now), r.answeredAt(now)
	had := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReachable)
	since := time.Time{} // a report of an answer before this is old
	if had != nil && had.Status == metav1.ConditionFalse && len(waits) == 0 {
		since = had.LastTransitionTime.Time
	}
	open := slices.DeleteFunc(slices.Clone(waits), func(w modelWait) bool { return answeredAt.After(w.since) })
	switch {
	case len(open) > 0:
		return unavailable(open), reachableInterval
	case answeredAt.After(since):
		return reachability(metav1.ConditionTrue, v1alpha1.ReasonAnswered, "The Model answered a Run"), 0
	case had == nil:
		return reachability(metav1.ConditionUnknown, v1alpha1.ReasonNotAsked, "No Run has asked the Model"), 0
	case had.Status == metav1.ConditionFalse:
		return reachability(metav1.ConditionFalse, v1alpha1.ReasonUnavailable, "No Run waits for the Model any more, and none was answered"), reachableInterval
	}
	return reachability(had.Status, had.Reason, had.Message), 0
}

func reachability(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionReachable, Status: status, Reason: reason, Message: message}
}

// unavailable returns the condition of a Model that Runs wait for or gave up on. The message has the cause of the
// longest wait, so that it changes only with the tries of that Run.
func unavailable(waits []modelWait) metav1.Condition {
	active := slices.DeleteFunc(slices.Clone(waits), func(w modelWait) bool { return w.gaveUp })
	text := fmt.Sprintf("%d Runs wait for the Model", len(active))
	switch len(active) {
	case 0:
		text, active = "Runs gave up waiting for the Model, which was unavailable", waits
	case 1:
		text = "1 Run waits for the Model"
	}
	first := slices.MinFunc(active, func(a, b modelWait) int { return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.run, b.run)) })
	text += " since " + first.since.UTC().Format("2006-01-02 15:04:05 UTC")
	if first.message != "" {
		text += ": " + first.message
	}
	return reachability(metav1.ConditionFalse, v1alpha1.ReasonUnavailable, text)
}

// A reportReader reads the reports of Runs about a Model.
type reportReader struct {
	client client.Reader
	model  *v1alpha1.Model
	byHash map[string]*task.Snapshot // the revisions with which Runs started, each read once
}

// each calls do with the Runs whose reports about the Model name also concern the Model of the reader.
func (r reportReader) each(ctx context.Context, kind, name string, do func(*v1alpha1.Run)) error {
	runs, err := runsByModel(ctx, r.client, r.model.Namespace, kind+name)
	if err != nil {
		return err
	}
	for i := range runs {
		snap, err := r.snapshotOf(ctx, &runs[i])
		if err != nil {
			return err
		}
		if isAbout(snap, name, r.model.Name) {
			do(&runs[i])
		}
	}
	return nil
}

// isAbout reports whether a report of a Run about one Model also concerns another. It concerns the reported Model, if
// an agent of the Run may use it, and the Model of the Agent that has it as a fallback. Reports about other Models do
// not count. A Run whose revision was deleted has ended.
func isAbout(snap *task.Snapshot, reported, model string) bool {
	switch {
	case snap == nil:
		return reported == model
	case reported == model:
		return slices.ContainsFunc(snap.Models, func(m task.Model) bool { return m.Name == model })
	}
	names := snap.Agent.Models
	return len(names) > 0 && names[0] == model && slices.Contains(names, reported)
}

// snapshotOf returns the snapshot of the revision of a Run; nil: it cannot be read.
func (r reportReader) snapshotOf(ctx context.Context, run *v1alpha1.Run) (*task.Snapshot, error) {
	if run.Status.Attempt == nil {
		return nil, nil //nolint:nilnil // before its first attempt a Run has no revision
	}
	hash := run.Status.Attempt.AgentRevision
	if snap, read := r.byHash[hash]; read {
		return snap, nil
	}
	var cm corev1.ConfigMap
	err := r.client.Get(ctx, client.ObjectKey{Namespace: r.model.Namespace, Name: snapshot.Name(hash)}, &cm)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("getting ConfigMap %s: %w", snapshot.Name(hash), err)
	}
	r.byHash[hash] = nil
	if v, unreadable := snapshot.Read(&cm, hash); err == nil && unreadable == nil {
		r.byHash[hash] = &v.Snapshot
	}
	return r.byHash[hash], nil
}
