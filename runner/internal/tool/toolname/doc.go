// Package toolname makes the names by which models call the tools of a Toolset.
package toolname
