// Package wiretest is what the tests of both wires stand on: networks of one
// answer, readers that chop, and recorded exchanges with real providers, which
// are not part of the repository.
package wiretest
