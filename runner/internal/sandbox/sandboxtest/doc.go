// Package sandboxtest starts a real sandbox for tests: the program that is in
// every sandbox, as a process of this machine.
package sandboxtest
