// Package objectcache has what the operator's caches keep of Runs and Pods.
//
// Most objects of an installation are Runs that have ended and their pods, which stay for
// podRetention and longer. Of these the caches keep what decisions read. That loses nothing
// on the API server: a status is patched field by field where it changes, and of a pod only
// owner, labels and signals are patched.
package objectcache
