// Package exit has the exit codes of commands, and the errors that a user must correct.
package exit
