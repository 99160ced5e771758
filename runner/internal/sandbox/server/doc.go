// Package server is the first process of a sandbox: it listens for the runner,
// has every command started by a thread that confined itself, and sees to it
// that nothing lives without a runner, without a supervisor or beyond its means.
//
// What it does over time:
//
//	launch.go   one thread, confined, starts supervisors; one at a time
//	commands.go which there are, and the end of those that are none's
//	session.go  the runner: its end is the end of all commands
//	watch.go    processes and memory, looked at 20 times a second while commands run
//	probe.go    what of the confinement holds, tried once at the start
//	proxy.go    the way out, from a port of loopback to the runner's socket
//
// It holds nothing that an agent's program could want, yet it is not dumpable, so
// that its environment is out of reach.
package server
