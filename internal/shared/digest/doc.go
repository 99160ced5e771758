// Package digest identifies a tool call by its effect: its tool and its arguments. A user decides about a call that is
// shown with its digest, and the digest is computed again for the call that is about to run: if it differs, the
// Decision does not apply.
package digest
