// Package refs reads the objects to which an Agent or a Model refers, directly or through
// others, and finds the objects that refer to one that changed.
//
// It reads from the operator's cache, each object once, so that cycles end.
package refs
