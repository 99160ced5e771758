package wiretest

import (
	"errors"
	"io"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/provider"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// Ask is a request for tests of answers.
var Ask = &model.Request{Steps: []step.Step{Says(step.RoleUser, "Hello?")}}

// Says returns a step that is one text.
func Says(role step.Role, text string) step.Step {
	return step.Step{Role: role, Parts: []step.Part{{Kind: step.PartText, Text: text}}}
}

// WithKey sets the key of a Model.
func WithKey(key string) func(*provider.Options) {
	return func(o *provider.Options) { o.Key = func() (string, error) { return key, nil } }
}

// CheckIncomplete checks that an answer is an IncompleteError, with an estimate of
// its usage.
func CheckIncomplete(t *testing.T, r model.Response, err error) {
	t.Helper()
	var incomplete *model.IncompleteError
	if !errors.As(err, &incomplete) || !model.Transient(err) || r.Finish != "" {
		t.Errorf("finish %q, error %v", r.Finish, err)
	}
	if !r.Usage.Estimated || r.Usage.InputTokens == 0 {
		t.Errorf("the usage is not estimated: %+v", r.Usage)
	}
}

// CheckNoKey checks that there is an error, and that it does not quote the beginning
// of a key.
func CheckNoKey(t *testing.T, err error, key string) {
	t.Helper()
	if err == nil || strings.Contains(err.Error(), key[:12]) {
		t.Errorf("got %v", err)
	}
}

// CheckPieces checks that decode returns what is wanted of a recorded answer, in
// whatever pieces it arrives.
func CheckPieces[T any](t *testing.T, r Recording, want T, decode func(testing.TB, Recording, io.Reader) (T, error)) {
	t.Helper()
	for _, size := range []int{1, 7, 4096} {
		got, err := decode(t, r, &Chopped{Data: r.Raw, Size: size})
		if err != nil {
			t.Errorf("%s in pieces of %d: %v", r.Name(), size, err)
			continue
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%s in pieces of %d: -want +got:\n%s", r.Name(), size, diff)
		}
	}
}

// BenchmarkStream reads an answer of a number of bytes, from the bytes of the network
// to the last delta.
func BenchmarkStream(b *testing.B, m model.Model, size int) {
	b.Helper()
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range m.Stream(b.Context(), Ask) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkCollect assembles the same answer too.
func BenchmarkCollect(b *testing.B, m model.Model, size int) {
	b.Helper()
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := model.Collect(m.Stream(b.Context(), Ask), nil); err != nil {
			b.Fatal(err)
		}
	}
}
