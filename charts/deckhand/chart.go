// Package chart has the CRDs and the admission policies that the chart installs, for programs
// that check manifests without a cluster. Helm ignores this file.
package chart

import "embed"

// CRDs has a file of one CustomResourceDefinition for each kind.
//
//go:embed files/crd/deckhand.dev_*.yaml
var CRDs embed.FS

// Policies has files of ValidatingAdmissionPolicies and their bindings.
//
//go:embed files/policy/*.yaml
var Policies embed.FS
