package redact

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Readers hold a table while others are learned: a table never changes.
func TestATableNeverChanges(t *testing.T) {
	r := New()
	var was, copied []*table
	for i := range 20 {
		r.Add(Secret{Name: "s", Key: "k", Value: []byte(strings.Repeat("a", MinSecret+i))})
		now := r.table.Load()
		var whole table
		for c, forms := range now {
			whole[c] = slices.Clone(forms)
		}
		was, copied = append(was, now), append(copied, &whole)
	}
	for i := range was {
		if diff := cmp.Diff(copied[i], was[i], cmp.AllowUnexported(form{})); diff != "" {
			t.Fatalf("the table of %d secrets, -before +after:\n%s", i+1, diff)
		}
	}
}

// Tokens are renewed for as long as a Run lasts, often with the same value.
func TestASecretThatIsAddedAgainTakesNoSpace(t *testing.T) {
	count := func(r *Redactor) (n int) {
		for _, forms := range r.knows() {
			n += len(forms)
		}
		return n
	}
	secret := Secret{Name: "s", Key: "k", Value: []byte("1234567890")}
	r := New(secret)
	before := count(r)
	r.Add(secret)
	if after := count(r); before == 0 || after != before {
		t.Errorf("%d forms are known, and %d after the secret was added again", before, after)
	}
}
