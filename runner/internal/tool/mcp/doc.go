// Package mcp makes tools of what an MCP server offers.
//
// A Server is a session with one server, over the standard streams of a program
// in a sandbox or over streamable HTTP. What it offers is asked once and then
// stays: the list of tools is a part of every request to a model. The session
// itself comes and goes: when it breaks, the next call makes another.
//
//	Tools ── call ── session ─┐
//	                          guard ── stdioConn ── sandbox.Process
//	                               └── streamable HTTP ── roundTripper ── auth
//
// A server is not trusted: it may be anyone's program, and a model reads its text.
// So everything is bounded before it is parsed: the length of a message, the number
// of tools, the size of their schemas, the length of a result, the time without
// progress. The guard takes from the stream what is no response to a request of the
// client: it passes progress to its call, declines requests and drops the rest, so
// that nothing queues up.
package mcp
