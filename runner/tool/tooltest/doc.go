// Package tooltest is the conformance suite of the optional ports of a tool.
package tooltest
