// Package exit has how commands end: exit codes, and errors that the user must correct.
package exit
