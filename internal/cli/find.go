package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/runflags"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

// findRun gets a Run. If it does not exist, the error has the most similar names.
func (f *Factory) findRun(ctx context.Context, c client.Client, name string) (*v1alpha1.Run, error) {
	run := &v1alpha1.Run{}
	name, err := runName(name)
	if err != nil {
		return nil, err
	}
	err = f.find(ctx, c, "Run", name, run)
	if kind := kindNamed(name); err != nil && kind != "" {
		return run, fmt.Errorf("%w. %s is a kind: write its name behind it, as in %s/NAME", err, name, kind)
	}
	return run, err
}

// openRun is findRun with a client of the user's cluster.
func (f *Factory) openRun(ctx context.Context, name string) (client.Client, *v1alpha1.Run, error) {
	c, err := f.Client()
	if err != nil {
		return nil, nil, err
	}
	run, err := f.findRun(ctx, c, name)
	return c, run, err
}

// kindNamed returns the kind that a word is, in lower case; empty: the word is a name.
func kindNamed(word string) string {
	for _, k := range explainedKinds {
		if strings.EqualFold(word, k.kind) {
			return strings.ToLower(k.kind)
		}
	}
	return ""
}

// runName returns the name of NAME or run/NAME. An object of another kind is an error.
func runName(text string) (string, error) {
	kind, name := runflags.CutKind(text)
	if kind != "" && kind != "run" || strings.Contains(name, "/") {
		return "", exit.Usagef("%q is no Run: write the name of a Run, as kubectl deckhand list prints it", text)
	}
	return name, nil
}

// find gets an object of the namespace. If it does not exist, the error has the most similar names.
func (f *Factory) find(ctx context.Context, c client.Client, kind, name string, o client.Object) error {
	namespace, err := f.Namespace()
	if err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: namespace, Name: name}
	err = c.Get(ctx, key, o)
	if !apierrors.IsNotFound(err) || isNotInstalled(err) {
		return err
	}
	return notFound(ctx, c, kind, key)
}

// notFound returns the error for an object that does not exist, with the most similar names.
func notFound(ctx context.Context, c client.Client, kind string, key client.ObjectKey) error {
	resource := strings.ToLower(kind) + "s"
	hint := "List " + kind + "s with: kubectl get " + resource + ".deckhand.dev -A"
	if kind == "Run" {
		hint = "List Runs with: kubectl deckhand list -A"
	}
	if near := nearest(key.Name, namesOf(ctx, c, kind, key.Namespace)); len(near) > 0 {
		hint = "Did you mean " + strings.Join(near, ", ") + "?"
	}
	return fmt.Errorf("%s %s not found in namespace %s. %s", strings.ToLower(kind), key.Name, key.Namespace, hint)
}

// namesOf lists the names of the objects of a kind; none if the user may not list them.
func namesOf(ctx context.Context, c client.Client, kind, namespace string) []string {
	var names []string
	for next := ""; ; {
		var page metav1.PartialObjectMetadataList
		page.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind + "List"))
		if c.List(ctx, &page, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(next)) != nil {
			return names
		}
		for i := range page.Items {
			names = append(names, page.Items[i].Name)
		}
		if next = page.Continue; next == "" {
			return names
		}
	}
}

// hasSameLetters reports whether two words differ in the order of their letters only.
func hasSameLetters(a, b string) bool {
	return slices.Equal(slices.Sorted(slices.Values([]byte(a))), slices.Sorted(slices.Values([]byte(b))))
}

// nearest returns at most three similar names, the most similar first.
func nearest(wanted string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	most := max(2, len(wanted)/3)
	var near []candidate
	for _, name := range names {
		d := template.EditDistance(wanted, name)
		if strings.HasPrefix(name, wanted) {
			d = min(d, 1)
		}
		if len(wanted) <= 3 && d > 1 && !hasSameLetters(wanted, name) { // it is another word
			continue
		}
		if d <= most {
			near = append(near, candidate{name, d})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return a.distance - b.distance })
	out := make([]string, 0, 3)
	for _, n := range near[:min(3, len(near))] {
		out = append(out, n.name)
	}
	return out
}
