// Package e2e tells user stories on a real cluster: the one of KUBECONFIG, with
// Deckhand installed and its images at hand. `make e2e` brings one up.
//
// The model is a scripted server in the cluster; everything else is real.
package e2e
