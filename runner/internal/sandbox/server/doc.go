// Package server is the first process of a sandbox. It accepts connections of the
// runner, starts commands from a confined thread, and kills processes that have no
// runner or no supervisor, or that exceed their limits.
//
//	main.go     options, and which processes the kernel kills first when memory is used up
//	serve.go    the connection of the runner: when it ends, all commands are killed
//	accept.go   what connections request
//	commands.go the running commands, the confined thread that starts their supervisors one at
//	            a time, and killing processes without a supervisor
//	watch.go    limits of processes and memory, checked while commands run
//	probe.go    what the confinement enforces, measured once at the start; the way from a port
//	            of loopback to the egress proxy of the runner
//
// The server holds no secrets. It is not dumpable nevertheless, so that commands
// cannot read its environment.
package server
