package revision_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision"
)

// A cluster is an API server, and a Client with a cache that has only the metadata of ConfigMaps.
type cluster struct {
	client.WithWatch

	revision.Client

	t     *testing.T
	reads int // of ConfigMaps, from the API server
}

func newCluster(t *testing.T, objects ...client.Object) *cluster {
	t.Helper()
	server := fake.NewClientBuilder().WithObjects(objects...).Build()
	c := &cluster{WithWatch: server, t: t}
	isMetadata := func(o any) bool {
		_, isObject := o.(*metav1.PartialObjectMetadata)
		_, isList := o.(*metav1.PartialObjectMetadataList)
		return isObject || isList
	}
	cached := interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if !isMetadata(o) {
				t.Errorf("the cache is asked for a %T", o)
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if !isMetadata(list) {
				t.Errorf("the cache is asked for a %T", list)
			}
			return c.List(ctx, list, opts...)
		},
	})
	live := interceptor.NewClient(server, interceptor.Funcs{Get: func(ctx context.Context, server client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		c.reads++
		return server.Get(ctx, key, o, opts...)
	}})
	c.Client = revision.NewClient(cached, live)
	return c
}

// get reads a ConfigMap of the namespace team with the Client, and fails the test unless it has this
// value and the API server was asked so often.
func (c *cluster) get(what, name, value string, reads int) {
	c.t.Helper()
	c.reads = 0
	var cm corev1.ConfigMap
	if err := c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: "team", Name: name}, &cm); err != nil {
		c.t.Fatalf("%s: %v", what, err)
	}
	if cm.Data["a"] != value || cm.Name != name || c.reads != reads {
		c.t.Errorf("%s: %s has %d bytes, want %d; read %d times, want %d", what, cm.Name, len(cm.Data["a"]), len(value), c.reads, reads)
	}
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Labels: map[string]string{v1alpha1.LabelRevision: "true"}},
		Data:       map[string]string{"a": value},
	}
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// The data of a ConfigMap is read once, and again when it may be another.
func TestTheDataOfARevisionIsReadOnce(t *testing.T) {
	c := newCluster(t, configMap("x", "1"))
	c.get("at first", "x", "1", 1)
	c.get("then", "x", "1", 0)

	changed := configMap("x", "2")
	c.must(c.Update(t.Context(), changed))
	c.get("with another resource version", "x", "2", 1)
	c.get("then", "x", "2", 0)

	c.must(c.Delete(t.Context(), changed))
	again := configMap("x", "3")
	again.UID = "another"
	c.must(c.WithWatch.Create(t.Context(), again))
	c.get("with another UID", "x", "3", 1)

	c.must(c.Delete(t.Context(), again))
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(again), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("getting a ConfigMap that was deleted: %v", err)
	}
}

// A new revision is created and never read by the operator that created it.
func TestACreatedRevisionIsNotRead(t *testing.T) {
	c := newCluster(t)
	c.must(c.Client.Create(t.Context(), configMap("x", "1")))
	c.get("after its creation", "x", "1", 0)
}

// What a caller does with a ConfigMap does not change the one that is kept.
func TestAKeptRevisionIsNotShared(t *testing.T) {
	c := newCluster(t, configMap("x", "1"))
	for range 2 {
		var cm corev1.ConfigMap
		c.must(c.Client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "x"}, &cm))
		cm.Data["a"], cm.Labels[v1alpha1.LabelRevision] = "2", "no"
	}
	c.get("after that", "x", "1", 0)
}

// The data that is kept is bounded, and what was used last is kept.
func TestKeptRevisionsAreBounded(t *testing.T) {
	const mib = 1 << 20
	large := strings.Repeat("x", mib)
	var objects []client.Object
	names := []string{}
	for i := range 40 {
		names = append(names, "x-"+strings.Repeat("i", i+1))
		objects = append(objects, configMap(names[i], large))
	}
	c := newCluster(t, objects...)
	for _, name := range names[:31] {
		c.get("at first", name, large, 1)
	}
	c.get("one of 31 MiB", names[0], large, 0)
	for _, name := range names[31:] {
		c.get("at first", name, large, 1)
	}
	c.get("the one that was used since", names[0], large, 0)
	c.get("the one that was not", names[1], large, 1)
	c.get("the last one", names[39], large, 0)
}

// A ConfigMap of the right name whose content is another is replaced, though its metadata is the
// same as that of the revision.
func TestOtherContentIsNoticedBehindMetadata(t *testing.T) {
	want := wanted(t)
	squatter := want.DeepCopy()
	squatter.Data = map[string]string{"runner.json": "{}"}
	c := newCluster(t, squatter)
	for range 2 {
		c.must(revision.Ensure(t.Context(), c.Client, c.WithWatch, want))
		var got corev1.ConfigMap
		c.must(c.WithWatch.Get(t.Context(), client.ObjectKeyFromObject(want), &got))
		if got.Data["runner.json"] == "{}" {
			t.Fatal("the ConfigMap of somebody else stays")
		}
	}
	if c.reads != 1 {
		t.Errorf("ConfigMaps were read %d times, want once: that of the other", c.reads)
	}
}

// Lists are of metadata alone.
func TestListedRevisionsHaveNoData(t *testing.T) {
	c := newCluster(t, configMap("x", "1"), configMap("y", "2"))
	var list corev1.ConfigMapList
	c.must(c.Client.List(t.Context(), &list, client.InNamespace("team"), client.HasLabels{v1alpha1.LabelRevision}))
	if len(list.Items) != 2 || list.Items[0].Name != "x" || list.Items[0].Data != nil || c.reads != 0 {
		t.Errorf("listed are %v, after %d reads", list.Items, c.reads)
	}
}
