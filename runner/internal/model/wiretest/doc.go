// Package wiretest supports the tests of both wire formats: networks with one answer, readers that split their input,
// and recorded exchanges with real providers, which are not part of the repository.
package wiretest
