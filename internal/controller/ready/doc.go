// Package ready is the controller of the kinds that Runs refer to: Agents, Models, Toolsets and Workflows. It sets the
// condition Ready, which reports whether an object is valid and whether everything that it refers to exists, and
// deletes stored revisions of Agents and Workflows that no unfinished Run needs. It calls no model provider and no MCP
// server, and reads no Secret: Runs do.
//
// A revision is needed by the Runs that started with it and by the stored revisions of Workflows that refer to it. So
// the revisions of nested Workflows are deleted from the outermost to the innermost, each about a minute after the one
// before.
package ready
