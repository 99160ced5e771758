package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
)

// ofFile returns the Run of a file.
func (r runCreator) ofFile(ctx context.Context, file string) (*v1alpha1.Run, error) {
	read := terminal.ReadFile
	if file == "-" {
		read = func(ctx context.Context, _ string) ([]byte, error) { return r.ReadInput(ctx) }
	}
	data, err := read(ctx, file)
	if err != nil {
		return nil, fmt.Errorf("%w: name a file with a Run, or - for standard input", err)
	}
	documents, err := splitDocuments(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(documents) != 1 {
		return nil, exit.Usagef("%s has %d objects: run -f takes a file with one Run. Apply other objects with kubectl apply -f", file, len(documents))
	}
	var is metav1.TypeMeta
	if err := yaml.Unmarshal(documents[0], &is); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if is.Kind != "Run" || is.APIVersion != v1alpha1.GroupVersion.String() {
		return nil, fmt.Errorf("%s: it is not a Run of %s but %s of %s. Apply other kinds with kubectl apply -f", file, v1alpha1.GroupVersion, cmp.Or(is.Kind, "nothing"), cmp.Or(is.APIVersion, "no version"))
	}
	run := &v1alpha1.Run{}
	if err := yaml.UnmarshalStrict(documents[0], run); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return run, nil
}

// splitDocuments returns the documents of YAML that are not empty.
func splitDocuments(data []byte) ([][]byte, error) {
	var out [][]byte
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		var content any
		if err := yaml.Unmarshal(document, &content); err != nil {
			return nil, err
		}
		if content != nil {
			out = append(out, document)
		}
	}
}

// setNamespace sets the namespace of a Run, unless its file has one. A different namespace in a flag is an error.
func (r runCreator) setNamespace(run *v1alpha1.Run) error {
	namespace, isFlag, err := r.config.Namespace()
	switch {
	case err != nil:
		return configError(err)
	case run.Namespace == "":
		run.Namespace = namespace
	case isFlag && run.Namespace != namespace:
		return exit.Usagef("the file says namespace %s, and --namespace says %s: leave out one of them", run.Namespace, namespace)
	}
	return nil
}
