// Package bench measures the whole on the real cluster of KUBECONFIG, with
// Deckhand installed: `make bench-cluster`. It asserts nothing; its figures are
// ratios taken in one run, and docs/performance.md says what they were.
package bench
