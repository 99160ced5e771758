// Package local runs Agents on this machine, without a cluster: kubectl deckhand run --local, and the program
// deckhand-local, which has nothing else and links no client of Kubernetes.
package local
