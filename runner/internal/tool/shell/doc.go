// Package shell has the tool that runs commands in the sandbox, and two tools for
// commands in the background.
//
// Each command is a new shell. Only its final working directory is kept, for the next
// command. A command writes it to a separate pipe (script.go), so that its output
// cannot be mistaken for it. Working directories and running jobs are stored in a file
// of the runner (state.go), so that the next attempt continues in the same directory
// and reports which jobs were lost.
package shell
