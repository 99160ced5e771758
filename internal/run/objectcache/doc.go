// Package objectcache has what the operator's caches keep of each kind.
//
// Users of a namespace write all of these objects, with whatever labels select them. So of each
// the caches keep what decisions read and nothing else, in bounds: a spec that the schema of its
// kind bounds, known labels and annotations, a few owners, and digests in place of what is only
// compared. Of ConfigMaps they have no data.
//
// Most objects of an installation are Runs that have ended and their pods, which stay for
// retention.pod and longer. Of these the caches keep even less. That loses nothing
// on the API server: a status is patched field by field where it changes, and of other objects
// only what is named in a patch changes.
package objectcache
