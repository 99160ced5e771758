// Package objectcache has what the operator's caches keep of each kind.
//
// Users of a namespace can write all of these objects, with any labels. So the caches keep only the fields of each that
// decisions read, within bounds: a spec that the schema of its kind bounds, known labels and annotations, a few owners,
// and digests of fields that are only compared. They keep no data of ConfigMaps.
//
// Most objects of an installation are Runs that have ended and their pods, which stay for retention.pod and longer. For
// these the caches keep even less. Nothing is lost on the API server: a status is patched field by field, and patches
// of other objects change only the fields that they name.
package objectcache
