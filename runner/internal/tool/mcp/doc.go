// Package mcp makes tools from the offers of an MCP server.
//
// A Server is a session with one server, over the standard streams of a program in a sandbox or over streamable HTTP.
// Its offers are read once and then stay the same, because the list of tools is part of every request to a model. The
// session itself may change: after it breaks, the next call opens another.
//
//	Tools ── call ── session ─┐
//	                          guard ── stdioConn ── sandbox.Process
//	                               └── streamable HTTP ── roundTripper ── auth
//
// A server is not trusted, and a model reads its text. So everything is bounded before it is parsed: the length of a
// message, the number of tools, the size of their schemas, the length of a result, the time without progress. The guard
// handles all messages that are not responses: it passes progress to its call, declines requests and drops the rest, so
// that nothing queues up.
package mcp
