package runner

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/workspace"
)

// What is away may come back; what is refused stays so.
func TestPersist(t *testing.T) {
	away, refused := errors.New("connection refused"), &workspace.RefusedError{Message: "no such branch"}
	for name, tc := range map[string]struct {
		answers []error // the last again and again
		want    error
		tries   int
	}{
		"it works at once":         {[]error{nil}, nil, 1},
		"it works the third time":  {[]error{away, away, nil}, nil, 3},
		"it is refused":            {[]error{away, refused}, refused, 2},
		"it stays away for 19 s":   {[]error{away}, away, 10},
		"it is refused right away": {[]error{refused}, refused, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wait, cancel := context.WithTimeout(t.Context(), 19*time.Second)
				defer cancel()
				tries := 0
				err := persist(wait, 2*time.Second, func() error {
					tries++
					return tc.answers[min(tries, len(tc.answers))-1]
				})
				if err != tc.want || tries != tc.tries { //nolint:errorlint // it is handed through
					t.Errorf("%v after %d tries, want %v after %d", err, tries, tc.want, tc.tries)
				}
			})
		})
	}
}
