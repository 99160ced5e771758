package revision

import (
	"container/list"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Bounds of the data that a Client keeps. A ConfigMap holds 1 MiB, a usual revision some KiB.
const (
	maxContents     = 4096
	maxContentBytes = 32 << 20
)

// contents keeps the data of the ConfigMaps that were used last, one version of each.
type contents struct {
	most, mostBytes int

	mu     sync.Mutex
	byKey  map[types.NamespacedName]*list.Element
	recent list.List // of *content; the first was used last
	bytes  int       // of all
}

// content is the data of one version of a ConfigMap.
type content struct {
	key     types.NamespacedName
	uid     types.UID
	version string
	cm      corev1.ConfigMap // without metadata
	bytes   int
}

func newContents(most, mostBytes int) *contents {
	return &contents{most: most, mostBytes: mostBytes, byKey: map[types.NamespacedName]*list.Element{}}
}

// read sets a ConfigMap to the object with this metadata; false: its data is not kept.
func (c *contents) read(meta *metav1.PartialObjectMetadata, cm *corev1.ConfigMap) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, has := c.byKey[client.ObjectKeyFromObject(meta)]
	if !has {
		return false
	}
	kept, is := e.Value.(*content)
	if !is || kept.uid != meta.UID || kept.version != meta.ResourceVersion {
		return false
	}
	c.recent.MoveToFront(e)
	kept.cm.DeepCopyInto(cm)
	meta.ObjectMeta.DeepCopyInto(&cm.ObjectMeta)
	return true
}

// keep keeps the data of a ConfigMap, drops other versions of it, and drops the least recently used data.
func (c *contents) keep(cm *corev1.ConfigMap) {
	kept := &content{
		key: client.ObjectKeyFromObject(cm), uid: cm.UID, version: cm.ResourceVersion, bytes: sizeOf(cm),
		cm: corev1.ConfigMap{Data: maps.Clone(cm.Data), BinaryData: maps.Clone(cm.BinaryData), Immutable: cm.Immutable},
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, has := c.byKey[kept.key]; has {
		c.drop(e)
	}
	c.byKey[kept.key] = c.recent.PushFront(kept)
	c.bytes += kept.bytes
	for c.recent.Len() > c.most || c.bytes > c.mostBytes {
		c.drop(c.recent.Back())
	}
}

func (c *contents) drop(e *list.Element) {
	dropped, is := c.recent.Remove(e).(*content)
	if !is {
		return
	}
	delete(c.byKey, dropped.key)
	c.bytes -= dropped.bytes
}

// sizeOf returns the bytes of keys and values, and of the map for each key.
func sizeOf(cm *corev1.ConfigMap) int {
	const entry = 64
	size := entry
	for k, v := range cm.Data {
		size += entry + len(k) + len(v)
	}
	for k, v := range cm.BinaryData {
		size += entry + len(k) + len(v)
	}
	return size
}
