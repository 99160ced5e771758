// Package supervise is the process that stands above one command of the sandbox.
//
// It was started by the server with the runner's connection, and with one to the
// server by which it is told what to run and when to stop. It adopts what its
// command's children leave behind, so that the kernel itself knows what belongs
// to the command. When the command ends, or has to, everything that belongs to
// it is stopped and killed, and only then the runner hears of the end.
//
// A supervisor is confined like the commands, and they may signal it: one that is
// killed takes its command with it, since the server ends what has no supervisor.
package supervise
