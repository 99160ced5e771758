// Package celkubernetes is the language of Workflows: CEL with the function libraries of
// Kubernetes. Only the operator links it: the runner does not import Kubernetes, and its
// image would be a fifth larger.
package celkubernetes

import (
	"github.com/google/cel-go/cel"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/deckhand-dev/deckhand/internal/shared/expr"
)

// Language has all functions of [expr.CEL] and those of Kubernetes' own expressions without
// authorization.
var Language = expr.NewLanguage(expr.Functions{Libraries: libraries, Cost: &library.CostEstimator{}})

// libraries are listed here, and not taken from k8s.io/apiserver/pkg/cel/environment: the
// language of Workflows must not change with the version of a Go module.
func libraries() []cel.EnvOption {
	return []cel.EnvOption{
		library.Lists(library.ListsVersion(1)),
		library.Regex(),
		library.URLs(),
		library.Quantity(),
		library.IP(),
		library.CIDR(),
		library.Format(),
		library.SemverLib(library.SemverVersion(1)),
	}
}
