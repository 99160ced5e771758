package ready

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
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
