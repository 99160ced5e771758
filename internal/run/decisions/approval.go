package decisions

import (
	"fmt"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/shared/digest"
)

// IsApproval reports whether an approval is of the request with an id and a digest: it
// names the id, and the digest is the one that it names or that the id ends in. A node
// of a workflow is approved once and always asks the same, so its id is enough.
func IsApproval(run *v1alpha1.Run, d *v1alpha1.Decision, id, sum string) bool {
	if d.Spec.Digest != "" && d.Spec.Digest != sum {
		return false
	}
	return d.Spec.Request == id && (d.Spec.Digest != "" || run.Spec.Workflow != "" || digest.IsBound(id, sum))
}

// mismatch returns why an approval is not of the request that it names.
func mismatch(p v1alpha1.PendingRequest, d *v1alpha1.Decision) string {
	const look = "Look at what it asks in status.progress.pending of the Run"
	if d.Spec.Digest == "" {
		return fmt.Sprintf("Request %s can only be approved with its digest, because its id does not end in it. %s, and set spec.digest to %s", p.ID, look, p.Digest)
	}
	return fmt.Sprintf("spec.digest is not the digest of request %s: another call was approved. %s: its digest is %s", p.ID, look, p.Digest)
}
