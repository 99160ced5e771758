package children

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Child is a child Run to create.
type Child struct {
	Run *v1alpha1.Run
	// Names are tried in turn: another Run may have the first.
	Names []string
	// Is reports whether a Run that exists is this child.
	Is func(existing *v1alpha1.Run) bool
}

// NamesTakenError says that other Runs have all names of a child.
type NamesTakenError struct{ Names []string }

func (e *NamesTakenError) Error() string {
	return fmt.Sprintf("the names %s are used by Runs that are not part of this one", strings.Join(e.Names, " and "))
}

// Create creates a child, or finds it. Whose a Run of its name is, only the API server
// knows: a cache may be late.
func Create(ctx context.Context, c client.Client, live client.Reader, child Child) (*v1alpha1.Run, error) {
	for _, name := range child.Names {
		run := child.Run.DeepCopy()
		run.Name = name
		err := c.Create(ctx, run)
		if !apierrors.IsAlreadyExists(err) {
			return run, err
		}
		var existing v1alpha1.Run
		if err := live.Get(ctx, client.ObjectKeyFromObject(run), &existing); err != nil {
			return nil, err
		}
		if child.Is(&existing) {
			return &existing, nil
		}
	}
	return nil, &NamesTakenError{child.Names}
}

// MaxName is the most characters of the name of a Run.
const MaxName = 63

// HashedName returns a name with the first digits of a hash of what is unique about the
// Run. It cuts the name if both do not fit.
func HashedName(name, unique string, digits int) string {
	hash := "-" + task.Hash([]byte(unique))[:digits]
	return strings.TrimRight(name[:min(len(name), MaxName-len(hash))], "-.") + hash
}
