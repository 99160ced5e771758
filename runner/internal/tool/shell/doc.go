// Package shell is the tool that runs commands in the sandbox, and the two that
// follow those that run in the background.
//
// Every command is a shell of its own; what remains is the directory that it
// ended in, where the next one starts. A command tells it on a pipe apart from
// its output (script.go), so that nothing it prints can be mistaken for it. The
// directories, and the jobs that run, are in a file of the runner's (state.go):
// the next attempt starts where this one ended, and says which jobs it lost.
package shell
