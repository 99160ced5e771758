package expr_test

import (
	"testing"

	"github.com/google/cel-go/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// beyondKubernetes has the expressions that Kubernetes does not compile, and why.
var beyondKubernetes = map[string]string{
	"an object of values of many types": "a literal has values of one type there",
	"optMap within optMap":              "the same, since nothing has a type in this test",
	"sums":                              "the same",
	"names of an object, in order":      "the same",
	"a key that is worked out":          "the same",
	"strings":                           "reverse is in a later version of CEL's strings",
	"math":                              "CEL's math is not in Kubernetes",
}

// What compiles here compiles in the API server's own environment too.
func TestAcceptedIsKubernetesCEL(t *testing.T) {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv()
	env, err := base.Extend(
		cel.Variable("nodes", cel.DynType), cel.Variable("input", cel.DynType), cel.Variable("item", cel.DynType),
		cel.Variable("previous", cel.OptionalType(cel.DynType)), cel.Variable("run", cel.DynType),
	)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range accepted {
		_, issues := env.Compile(tt.text)
		if why := beyondKubernetes[name]; (issues.Err() != nil) != (why != "") {
			t.Errorf("%s: %s: %v; expected: %s", name, tt.text, issues.Err(), why)
		}
	}
}
