// Package mcp makes tools of what an MCP server offers.
//
// A Server is a session with one server, over the standard streams of a program
// in a sandbox or over streamable HTTP. What it offers is asked once and then
// stays: the list of tools is a part of every request to a model. The session
// itself comes and goes: when it breaks, the next call makes another.
//
//	Tools ── call ── session ─┐
//	                          guard ── pipe ── sandbox.Process
//	                               └── streamable HTTP ── wire ── auth
//
// A server is not trusted. It may be anybody's program, and what it says goes to
// a model. So everything is bounded before it is looked at: the length of a
// message, the number of tools, the size of their schemas, what a result says,
// how long nothing may happen. The guard takes from the stream what is no answer
// to a question of ours: progress is told to the call that it belongs to,
// requests are declined, everything else is dropped, so that nothing queues up.
package mcp
