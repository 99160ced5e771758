// Package cli has the commands of kubectl-deckhand, one in each file. A Factory gives them the client, the namespace,
// the terminal and the time. Texts of models and tools pass through package untrusted before they are printed.
package cli
