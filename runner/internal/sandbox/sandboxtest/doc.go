// Package sandboxtest starts a real sandbox for tests: the program cmd/sandbox, as a
// process of this machine.
package sandboxtest
