package apitest

import (
	"bytes"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// ReadObjects reads the objects of a YAML file.
func ReadObjects(file string) ([]client.Object, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parseObjects(file, data)
}

// readPolicies is ReadObjects for admission policies. It changes them so that they also treat the user of tests as the
// operator.
func readPolicies(file string) ([]client.Object, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parseObjects(file, bytes.ReplaceAll(data, []byte("['"+Operator+"']"), []byte("['"+Operator+"', 'admin']")))
}

func parseObjects(file string, data []byte) ([]client.Object, error) {
	var out []client.Object
	for doc := range bytes.SplitSeq(data, []byte("\n---\n")) {
		var u unstructured.Unstructured
		if err := yaml.Unmarshal(doc, &u.Object); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		if u.Object != nil {
			out = append(out, &u)
		}
	}
	return out, nil
}
