// Package digest names a call of a tool by what it would do: its tool and its
// arguments. A user decides on the call that was shown with a digest, and the digest is
// computed again from the call that is about to run: if it differs, the Decision does not apply.
package digest
