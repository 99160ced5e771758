// Package sandbox runs programs where an agent's tools run: in a container that
// holds no credential and cannot get one.
//
// The runner is in one container, the programs are in another, and a unix socket
// on a shared volume is all that is between them. A Client is the runner's end.
// The program cmd/sandbox, whose parts are in the packages below this one, is
// the other end and the first process of that container:
//
//	runner          │ sandbox (PID 1)           the agent's programs
//	Client ─ session ─ server                   its end kills everything
//	       ─ process ─ ▸ supervisor ─────────── ▸ a command and all below it
//	egress ─ proxy ─── ▸ 127.0.0.1:port ◂─────── HTTP_PROXY
//
// Every command has a connection of its own, which its supervisor speaks on. A
// supervisor adopts whatever its command leaves behind, so that nothing outlives
// the command: neither what left the process group nor what holds a pipe.
// Supervisors and commands come from one thread of the server that has confined
// itself (package internal/confine), so that they are confined from their first
// instruction, all of them together: they may signal and debug one another, but
// not the server.
//
// The far end is not trusted. Whatever the model ran may have taken it over, so
// what comes from there is bounded, and what makes no sense ends the connection.
package sandbox
