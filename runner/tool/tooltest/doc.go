// Package tooltest calls tools in tests as the runner does, and is the conformance suite of
// the optional fields of a tool.
package tooltest
