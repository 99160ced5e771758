// Package supervise is the process that supervises one command of the sandbox.
//
// The server starts it with two connections: one to the runner, and one to the
// server, over which it receives the command and requests to stop it. It is the
// subreaper of the command, so all descendants of the command are its
// descendants. When the command ends or has to end, the supervisor stops and kills
// all of them, and then reports the exit to the runner.
//
// A supervisor is confined like the commands, and they may signal it. If it is
// killed its command ends too: the server kills what has no supervisor.
package supervise
