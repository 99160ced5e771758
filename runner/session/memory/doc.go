// Package memory is a session store that is gone with the process. It is
// bounded: what is over its bounds is refused, so that a long life costs no
// more than a short one.
package memory
