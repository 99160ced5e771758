package labelindex_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/labelindex"
)

func TestWhichListsUseAnIndex(t *testing.T) {
	selector := func(text string) client.ListOption {
		s, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return client.MatchingLabelsSelector{Selector: s}
	}
	claim := v1alpha1.LabelVolumeClaim
	cases := map[string]struct {
		list client.ObjectList
		opts []client.ListOption
		want string
	}{
		"by a label that is indexed":         {&corev1.PodList{}, []client.ListOption{client.MatchingLabels{claim: "x"}}, "label:" + claim + "=x"},
		"with another label":                 {&corev1.PodList{}, []client.ListOption{client.MatchingLabels{claim: "x", "a": "b"}}, "label:" + claim + "=x"},
		"by one value of a set":              {&corev1.PodList{}, []client.ListOption{selector(claim + " in (x)")}, "label:" + claim + "=x"},
		"by several values":                  {&corev1.PodList{}, []client.ListOption{selector(claim + " in (x,y)")}, ""},
		"by another value":                   {&corev1.PodList{}, []client.ListOption{selector(claim + "!=x")}, ""},
		"by having the label":                {&corev1.PodList{}, []client.ListOption{client.HasLabels{claim}}, ""},
		"by another label":                   {&corev1.PodList{}, []client.ListOption{client.MatchingLabels{"a": "b"}}, ""},
		"by that of another kind":            {&v1alpha1.RunList{}, []client.ListOption{client.MatchingLabels{claim: "x"}}, ""},
		"by a field":                         {&corev1.PodList{}, []client.ListOption{client.MatchingLabels{claim: "x"}, client.MatchingFields{"f": "y"}}, "f=y"},
		"of all objects":                     {&corev1.PodList{}, nil, ""},
		"of a kind of which nothing is said": {&corev1.SecretList{}, []client.ListOption{client.MatchingLabels{claim: "x"}}, ""},
	}
	scheme := clientgoscheme.Scheme
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got client.ListOptions
			c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
				List: func(_ context.Context, _ client.WithWatch, _ client.ObjectList, opts ...client.ListOption) error {
					got.ApplyOptions(opts)
					return nil
				},
			})
			want := client.ListOptions{}
			want.ApplyOptions(tc.opts)
			if err := (labelindex.Client{Client: c}).List(t.Context(), tc.list, tc.opts...); err != nil {
				t.Fatal(err)
			}
			field := ""
			if got.FieldSelector != nil {
				field = got.FieldSelector.String()
			}
			if field != tc.want {
				t.Errorf("the index is %q, want %q", field, tc.want)
			}
			if want.LabelSelector != nil && got.LabelSelector.String() != want.LabelSelector.String() {
				t.Errorf("the labels are %s, want %s", got.LabelSelector, want.LabelSelector)
			}
		})
	}
}
