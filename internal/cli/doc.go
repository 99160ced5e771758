// Package cli has the commands of kubectl-deckhand. Each is in a file of its own and gets
// what it needs from a Factory: the client, the namespace, the terminal and the time.
//
// Text that models and tools wrote passes through package untrusted before it is printed.
package cli
