package revision

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Metadata returns an object to get or watch the metadata of a ConfigMap.
func Metadata() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
}

// Client reads ConfigMaps by their metadata in the cache of another client. Every user who may write ConfigMaps can
// give them the label of revisions, so their data is not cached: it is read from the API server when it is needed, and
// a bounded part of it is kept in memory.
type Client struct {
	client.Client
	live     client.Reader // the API server itself, not the cache
	contents *contents
}

// NewClient returns a Client over a client with a cache, and a Reader without one.
func NewClient(cached client.Client, live client.Reader) Client {
	return Client{cached, live, newContents(maxContents, maxContentBytes)}
}

// Get reads an object. A ConfigMap that the cache does not have is not found. Otherwise its data has the UID and the
// resource version of the cached metadata, or is newer.
func (c Client) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	cm, is := o.(*corev1.ConfigMap)
	if !is {
		return c.Client.Get(ctx, key, o, opts...)
	}
	meta := Metadata()
	if err := c.Client.Get(ctx, key, meta, opts...); err != nil {
		return err
	}
	if c.contents.read(meta, cm) {
		return nil
	}
	if err := c.live.Get(ctx, key, cm); err != nil {
		return err
	}
	c.contents.keep(cm)
	return nil
}

// List reads the objects of a list. ConfigMaps have no data.
func (c Client) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	out, is := list.(*corev1.ConfigMapList)
	if !is {
		return c.Client.List(ctx, list, opts...)
	}
	found := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}}
	if err := c.Client.List(ctx, &found, opts...); err != nil {
		return err
	}
	out.ListMeta, out.Items = found.ListMeta, nil
	for i := range found.Items {
		out.Items = append(out.Items, corev1.ConfigMap{ObjectMeta: found.Items[i].ObjectMeta})
	}
	return nil
}

// Create creates an object. The data of a ConfigMap is kept, so that it is not read again.
func (c Client) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	if err := c.Client.Create(ctx, o, opts...); err != nil {
		return err
	}
	if cm, is := o.(*corev1.ConfigMap); is {
		c.contents.keep(cm)
	}
	return nil
}
