package api_test

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// maxMutations is the number of manifests; a minute of more than 30,000 found no difference.
const maxMutations = 1500

// A manifest in which values and names were replaced at random is refused by both, lint and the
// server, or by none.
func TestLintAgreesWithTheServerAboutMutations(t *testing.T) {
	s := apitest.Get(t)
	namespace := authorsNamespace(t, s)
	r := rand.New(rand.NewPCG(1, 2))
	documents := append(documentsIn(t, "refused"), documentsIn(t, "accepted")...)
	for range maxMutations {
		manifest := mutated(r, documents[r.IntN(len(documents))])
		if !isOurs(manifest) {
			continue
		}
		answer, found := post(t, s, namespace, manifest), lintErrors(t, manifest)
		if (answer != "") != (len(found) > 0) {
			t.Errorf("the server says %q and lint %q of:\n%s", answer, found, manifest)
		}
	}
}

// documentsIn returns the documents in a folder of lint's test data, in order.
func documentsIn(t *testing.T, folder string) []string {
	t.Helper()
	var out []string
	for _, manifest := range manifestsIn(t, folder) {
		out = append(out, manifest)
	}
	slices.Sort(out)
	return out
}

var (
	scalar    = regexp.MustCompile(`: [^ {\[\n][^,}\]\n]*`)
	fieldName = regexp.MustCompile(`[a-zA-Z]+:`)

	otherValues = []string{
		": null", ": []", ": {}", ": 1e400", ": -1", ": 99999999999999999999", ": [null]", ": {a: 1}", ": true", `: ""`, ": 0",
		": 10m", ": 1.5", ": 5USD", `: "0"`, `: "${{ input.a.b[0] }}"`, ": 2001-01-01", ": !!binary aGk=", ": [[[]]]", ": '*/5 * * * *'", `: {cel: "a +"}`,
	}
	otherNames = []string{
		"spec:", "metadata:", "items:", "when:", "schema:", "input:", "tools:", "agent:", "null:", "1:", "prompt:", "nodes:", "name:",
		"finalizers:", "labels:", "ownerReferences:", "generateName:",
	}
)

// mutated replaces a value and, at times, a name.
func mutated(r *rand.Rand, manifest string) string {
	replace := func(what *regexp.Regexp, with []string) {
		if at := what.FindAllStringIndex(manifest, -1); len(at) > 0 {
			place := at[r.IntN(len(at))]
			manifest = manifest[:place[0]] + with[r.IntN(len(with))] + manifest[place[1]:]
		}
	}
	replace(scalar, otherValues)
	if r.IntN(2) == 0 {
		replace(fieldName, otherNames)
	}
	return manifest
}

// isOurs is whether a manifest is one that the server has a path for, in the namespace of the
// test.
func isOurs(manifest string) bool {
	var head struct {
		APIVersion, Kind string
		Metadata         struct{ Namespace any }
		Spec             struct{ By any }
	}
	if yaml.Unmarshal([]byte(manifest), &head) != nil || head.APIVersion != "deckhand.dev/v1alpha1" {
		return false
	}
	if head.Kind == "Decision" && head.Spec.By != author {
		return false // lint does not know who creates it
	}
	_, named := head.Metadata.Namespace.(string)
	return !named && slices.Contains([]string{"Agent", "Decision", "Model", "Run", "Schedule", "Toolset", "Workflow"}, head.Kind)
}
