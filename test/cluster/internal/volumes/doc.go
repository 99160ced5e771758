// Package volumes gives claims of the class "standard" a place on the one node: a folder below the cluster's own, as a
// PersistentVolume of the kind `local`, so that fsGroup works as with any disk. The size that a claim requests is not
// enforced, as on most test clusters, unless the claim has
//
//	annotations: {deckhand.test/enforce-size: "true"}
//
// Its folder is then a file system in memory of exactly that size, for tests of a full disk. Written bytes count as
// memory of the pod that writes them.
//
// Volumes are made where their first pod was scheduled (WaitForFirstConsumer), and are deleted with their claim and all
// its data. Block volumes are not supported.
package volumes
