// Package toolbox makes images that resemble those of users: a Debian with a shell, git, Python and Go, and a Debian
// with Node.js and MCP servers. It makes them from the mirror of Debian and from programs of this machine, without a
// container engine.
//
//	toolbox:dev   Debian ── Go, its standard library compiled
//	mcp:dev       Debian ── Node.js, MCP servers
//
// A layer takes minutes to make and is therefore cached, outside of clones and clusters, under a name with a hash of
// its inputs.
package toolbox
