// Package sandbox runs programs where an agent's tools run: in a container that
// holds no credential and cannot get one.
//
// The runner and the programs are in different containers, connected only by a
// unix socket on a shared volume. The runner uses a Client. The server is the
// program cmd/sandbox, whose parts are the packages below this one. It is the
// first process of its container:
//
//	runner          │ sandbox (PID 1)           the agent's programs
//	Client ─ session ─ server                   when it ends, all commands end
//	       ─ process ─ ▸ supervisor ─────────── ▸ a command and all below it
//	egress ─ proxy ─── ▸ 127.0.0.1:port ◂─────── HTTP_PROXY
//
// Each command has a connection of its own, which its supervisor serves. A
// supervisor is the subreaper of its command, so that no process outlives the
// command, even if it left the process group or holds a pipe open. One confined
// thread of the server starts all supervisors and commands (package
// internal/confine). They are therefore confined from their first instruction, in
// one domain: they may signal and debug one another, but not the server.
//
// The client does not trust the server, because a program of the model may have
// taken it over. The client bounds what it reads and closes the connection on a
// violation of the protocol.
package sandbox
