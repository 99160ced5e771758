// Package mirror copies sessions from the journal of a Run to a store of sessions, in the background, so that a slow or
// unavailable store does not affect the Run. Only the journal is authoritative.
package mirror
