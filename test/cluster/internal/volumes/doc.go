// Package volumes gives claims of the class "standard" a place on the one node:
// a folder below the cluster's own, as a PersistentVolume of the kind `local`,
// so that fsGroup works as with any disk. What a claim asks for is not enforced,
// as it is not on most test clusters, unless the claim carries
//
//	annotations: {deckhand.test/enforce-size: "true"}
//
// Its folder is then a file system in memory of exactly that size, where a full
// disk can be seen. Memory that is written there counts for the pod that writes.
//
// Volumes are made where their first pod was scheduled (WaitForFirstConsumer),
// and go with their claim, with all they hold. Blocks are not to be had.
package volumes
