// Package mirror copies what the journal of a Run has into a store of sessions, in the
// background: a store that is slow or down costs the Run nothing. The journal alone decides.
package mirror
