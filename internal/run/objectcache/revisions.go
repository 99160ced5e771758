package objectcache

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
)

// maxRequired is the most revisions that a revision may require: one for each node of a Workflow.
const maxRequired = 64 + 16

// hashLength is the length of the hash of a revision.
const hashLength = 64

// Revision returns what the cache keeps of a ConfigMap with the label of revisions: metadata,
// and never data. A hash that the name does not have, and required revisions that no Workflow
// can have, were not written by the operator and are dropped.
func Revision(o any) (any, error) {
	switch o := o.(type) {
	case *metav1.PartialObjectMetadata:
		return &metav1.PartialObjectMetadata{ObjectMeta: revisionMeta(&o.ObjectMeta)}, nil
	case *corev1.ConfigMap:
		return &corev1.ConfigMap{ObjectMeta: revisionMeta(&o.ObjectMeta)}, nil
	}
	return o, nil
}

func revisionMeta(m *metav1.ObjectMeta) metav1.ObjectMeta {
	kept := identity(m)
	kept.Labels = chosen(m.Labels, v1alpha1.LabelRevision, v1alpha1.LabelAgent, v1alpha1.LabelWorkflow)
	hash := m.Annotations[v1alpha1.AnnotationRevisionHash]
	if !isHash(hash) || snapshot.Name(hash) != m.Name {
		return kept
	}
	kept.Annotations = map[string]string{v1alpha1.AnnotationRevisionHash: hash}
	if required := m.Annotations[v1alpha1.AnnotationRequiredRevisions]; areHashes(required) {
		kept.Annotations[v1alpha1.AnnotationRequiredRevisions] = required
	}
	return kept
}

// areHashes reports whether a text is a list of hashes that a revision can require.
func areHashes(text string) bool {
	if len(text) > maxRequired*(hashLength+1) {
		return false
	}
	for hash := range strings.SplitSeq(text, ",") {
		if !isHash(hash) {
			return false
		}
	}
	return true
}

func isHash(text string) bool {
	return len(text) == hashLength && strings.Trim(text, "0123456789abcdef") == ""
}
