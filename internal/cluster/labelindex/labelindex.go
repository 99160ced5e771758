// Package labelindex answers lists by label from indexes of the informer cache.
//
// For a list with a label selector the cache compares every object of the namespace: the cost of
// a Run would grow with the number of Runs. With an index it reads only the objects that have
// the value of the label.
package labelindex

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// indexed are the labels with an index, by kind.
var indexed = map[string]struct {
	object client.Object
	labels []string
}{
	"Pod":                   {&corev1.Pod{}, []string{v1alpha1.LabelVolumeClaim, v1alpha1.LabelEgress}},
	"PersistentVolumeClaim": {&corev1.PersistentVolumeClaim{}, []string{v1alpha1.LabelRun}},
	"ConfigMap":             {configMap, []string{v1alpha1.LabelAgent, v1alpha1.LabelWorkflow}},
	"Run":                   {&v1alpha1.Run{}, []string{v1alpha1.LabelParentRun, v1alpha1.LabelWorkflowRun, v1alpha1.LabelSchedule}},
}

// configMap is a ConfigMap whose metadata the cache has.
var configMap = &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}

// Each calls add for each index.
func Each(add func(object client.Object, field string, values client.IndexerFunc) error) error {
	for kind, of := range indexed {
		for _, label := range of.labels {
			values := func(o client.Object) []string {
				if value, is := o.GetLabels()[label]; is {
					return []string{value}
				}
				return nil
			}
			if err := add(of.object, fieldOf(label), values); err != nil {
				return fmt.Errorf("indexing %s by label %s: %w", kind, label, err)
			}
		}
	}
	return nil
}

func fieldOf(label string) string { return "label:" + label }

// A Client is a client of a cache that has the indexes of [Each].
type Client struct{ client.Client }

// List uses an index if one of the labels of the selector has one.
func (c Client) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	if o.LabelSelector == nil || o.FieldSelector != nil {
		return c.Client.List(ctx, list, opts...)
	}
	gvk, err := c.GroupVersionKindFor(list)
	if err != nil {
		return fmt.Errorf("listing %T: %w", list, err)
	}
	requirements, _ := o.LabelSelector.Requirements()
	for _, r := range requirements {
		if value, is := onlyValue(r); is && slices.Contains(indexed[strings.TrimSuffix(gvk.Kind, "List")].labels, r.Key()) {
			o.FieldSelector = fields.OneTermEqualSelector(fieldOf(r.Key()), value)
		}
	}
	return c.Client.List(ctx, list, &o)
}

// onlyValue returns the single value that a label must have; false if there are several.
func onlyValue(r labels.Requirement) (value string, is bool) {
	switch r.Operator() {
	case selection.Equals, selection.DoubleEquals, selection.In:
		values := r.Values().UnsortedList()
		return values[0], len(values) == 1
	default:
		return "", false
	}
}
