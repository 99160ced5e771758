// Package toolbox makes images that look like those of users: a Debian with a
// shell, git, Python and Go, and the same with Node.js and MCP servers. They are
// made from what Debian's mirror and this machine have, without an engine.
//
//	toolbox:dev   Debian ── Go, its standard library compiled
//	mcp:dev       Debian ── Node.js, MCP servers
//
// Each layer takes a while to make and is therefore kept, outside of clones and
// clusters, under a name that says all it was made of.
package toolbox
