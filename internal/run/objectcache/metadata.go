package objectcache

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/specsize"
)

// Bounds of the metadata that is kept. The API server bounds neither the number of labels and owners nor the length of
// the names in an owner. The operator's own metadata is smaller, and a policy admits no Run with more than 64 labels; a
// child Run has these and the operator's own.
const (
	maxLabels     = 80
	maxValue      = 1 << 10
	MaxOwners     = 16
	maxAPIVersion = 253 + 1 + 63
	maxKind       = 63
	maxName       = 253
	maxUID        = 64
)

// An object is a pointer to a struct with metadata.
type object[T any] interface {
	*T
	client.Object
}

// Functions that return what the cache keeps of an object: its spec, unless that is too large (see package specsize),
// and its status, but neither labels nor annotations.
var (
	Agent    = withSpec(func(o *v1alpha1.Agent) *v1alpha1.AgentSpec { return &o.Spec })
	Model    = withSpec(func(o *v1alpha1.Model) *v1alpha1.ModelSpec { return &o.Spec })
	Toolset  = withSpec(func(o *v1alpha1.Toolset) *v1alpha1.ToolsetSpec { return &o.Spec })
	Workflow = withSpec(func(o *v1alpha1.Workflow) *v1alpha1.WorkflowSpec { return &o.Spec })
	Schedule = withSpec(func(o *v1alpha1.Schedule) *v1alpha1.ScheduleSpec { return &o.Spec })
	Decision = withSpec(func(o *v1alpha1.Decision) *v1alpha1.DecisionSpec { return &o.Spec })
)

func withSpec[T, S any, P object[T]](specOf func(P) *S) func(any) (any, error) {
	return func(o any) (any, error) {
		was, is := o.(P)
		if !is || isDropped(was, specOf(was)) {
			return o, nil // client-go transforms a listed object twice
		}
		kept := *was // what is shared with it is not changed
		keepIdentity(P(&kept))
		specsize.Drop(P(&kept), specOf(&kept))
		return P(&kept), nil
	}
}

// isDropped reports whether there is no spec, which no schema allows: it was dropped before.
func isDropped[S any](o metav1.Object, spec *S) bool {
	return specsize.Dropped(o) != "" && reflect.ValueOf(spec).Elem().IsZero()
}

func keepIdentity(o client.Object) {
	o.SetOwnerReferences(reducedOwners(o.GetOwnerReferences()))
	o.SetLabels(nil)
	o.SetAnnotations(nil)
	o.SetManagedFields(nil)
	o.SetFinalizers(nil)
	o.SetGenerateName("")
}

// IdentityOnly returns what the cache keeps of an object whose existence is enough: namespace, name, UID and resource
// version.
func IdentityOnly(o any) (any, error) {
	switch o := o.(type) {
	case *metav1.PartialObjectMetadata:
		return &metav1.PartialObjectMetadata{ObjectMeta: identity(&o.ObjectMeta)}, nil
	case *corev1.ServiceAccount:
		return &corev1.ServiceAccount{ObjectMeta: identity(&o.ObjectMeta)}, nil
	case *rbacv1.RoleBinding:
		return &rbacv1.RoleBinding{ObjectMeta: identity(&o.ObjectMeta)}, nil
	}
	return o, nil
}

// identity returns the metadata that every object keeps.
func identity(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Generation: m.Generation,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
	}
}

// chosen returns the values of some keys, without values that are longer than any that the operator writes; nil if
// there are none.
func chosen(all map[string]string, keys ...string) map[string]string {
	var out map[string]string
	for _, k := range keys {
		if v, has := all[k]; has && len(v) <= maxValue {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = v
		}
	}
	return out
}

// reducedOwners returns owners within the bounds: the controller first, then owners of Deckhand's kinds. If the name of
// an owner is longer than any object's, a part of it is kept. If an object has owners, at least one is kept.
func reducedOwners(all []metav1.OwnerReference) []metav1.OwnerReference {
	if hasReducedOwners(all) {
		return all
	}
	kept := slices.Clone(all)
	slices.SortStableFunc(kept, func(a, b metav1.OwnerReference) int { return cmp.Compare(rank(a), rank(b)) })
	kept = slices.Clone(kept[:min(len(kept), MaxOwners)])
	for i, o := range kept {
		kept[i].APIVersion, kept[i].Kind = cut(o.APIVersion, maxAPIVersion), cut(o.Kind, maxKind)
		kept[i].Name, kept[i].UID = cut(o.Name, maxName), types.UID(cut(string(o.UID), maxUID))
	}
	return kept
}

func hasReducedOwners(all []metav1.OwnerReference) bool {
	return len(all) <= MaxOwners && !slices.ContainsFunc(all, func(o metav1.OwnerReference) bool {
		return len(o.APIVersion) > maxAPIVersion || len(o.Kind) > maxKind || len(o.Name) > maxName || len(o.UID) > maxUID
	})
}

// rank orders owners by how much depends on them.
func rank(o metav1.OwnerReference) int {
	switch {
	case o.Controller != nil && *o.Controller:
		return 0
	case strings.HasPrefix(o.APIVersion, v1alpha1.GroupVersion.Group+"/"):
		return 1
	}
	return 2
}

// cut returns the first bytes of a text, copied.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.Clone(text[:most])
}

// AgentWith returns a function that returns what the cache keeps of an Agent. It sets the durability of Agents without
// one, so that all controllers, which read Agents from the cache, see that durability.
func AgentWith(durability v1alpha1.Durability) func(any) (any, error) {
	return func(o any) (any, error) {
		kept, err := Agent(o)
		agent, is := kept.(*v1alpha1.Agent)
		if !is || agent.Spec.Workspace.Durability != "" || specsize.Dropped(agent) != "" {
			return kept, err
		}
		with := *agent // what is shared with it is not changed
		with.Spec.Workspace.Durability = durability
		return &with, err
	}
}
