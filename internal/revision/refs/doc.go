// Package refs reads the objects to which an Agent or a Model refers, directly or through others, each object once, so
// that cycles end. It links no client, so that programs without a cluster can use it. Package cached has the operator's
// reader, and finds the objects that refer to a changed object.
package refs
