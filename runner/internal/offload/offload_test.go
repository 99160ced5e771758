package offload

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/backend/state"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// kept is what was written, by name.
type kept map[string]string

func (k kept) write(_ context.Context, name, text string) error {
	k[name] = text
	return nil
}

// numbered are lines that together have so many bytes, and a few more.
func numbered(bytes int) string {
	var b strings.Builder
	for i := 1; b.Len() < bytes; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func TestText(t *testing.T) {
	large := numbered(80_000)
	count := strings.Count(large, "\n")
	long := strings.Repeat("é", 50_000)
	cases := map[string]struct {
		text, want string
		kept       kept
	}{
		"what is small stays": {text: "small", want: "small"},
		"so does what is just not large": {
			text: strings.Repeat("x", DefaultBytes),
			want: strings.Repeat("x", DefaultBytes),
		},
		"many lines": {
			text: large,
			want: fmt.Sprintf("The result is large: %d bytes in %d lines, about %d tokens. All of it is in the file /results/s3c1.\n"+
				"Read that in parts, with offset and limit, or look for what you need in it with Grep; do not read it whole.\n\n"+
				"Its first 5 lines:\n\nline 1\nline 2\nline 3\nline 4\nline 5\n\n"+
				"[%d lines are left out here]\n\nIts last 5 lines:\n\n"+
				"line %d\nline %d\nline %d\nline %d\nline %d",
				len(large), count, len(large)/4, count-10, count-4, count-3, count-2, count-1, count),
			kept: kept{"s3c1": large},
		},
		"few lines that are long": {
			text: long + "\nend",
			want: "The result is large: 100004 bytes in 2 lines, about 25001 tokens. All of it is in the file /results/s3c1.\n" +
				"Read that in parts, with offset and limit, or look for what you need in it with Grep; do not read it whole.\n\n" +
				"Its lines, cut where they are long:\n\n" + strings.Repeat("é", 1000) + "…\nend",
			kept: kept{"s3c1": long + "\nend"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k := kept{}
			got := New(k.write, Options{}).Text(t.Context(), step.Call{ID: "s3c1", Name: "Http"}, tc.text)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Text() -want +got:\n%s", diff)
			}
			if tc.kept == nil {
				tc.kept = kept{}
			}
			if diff := cmp.Diff(tc.kept, k); diff != "" {
				t.Errorf("kept -want +got:\n%s", diff)
			}
		})
	}
}

func TestWhatBoundsItselfIsKept(t *testing.T) {
	large := numbered(100_000)
	e := New(kept{}.write, Options{Exempt: func(name string) bool { return name == "Read" }})
	if got := e.Text(t.Context(), step.Call{ID: "s1c1", Name: "Read"}, large); got != large {
		t.Errorf("the result of a tool that bounds itself has %d bytes, want all", len(got))
	}
	if got := e.Text(t.Context(), step.Call{ID: "s1c2", Name: "Http"}, large); got == large {
		t.Error("the result of another tool is whole")
	}
}

// However bad it gets, what the model reads is bounded, is text, and says why.
func TestAResultThatCannotBeKeptIsCut(t *testing.T) {
	fail := func(context.Context, string, string) error { return errors.New("no space left") }
	for _, bytes := range []int{DefaultBytes, 1000, 10} {
		got := New(fail, Options{Bytes: bytes}).Text(t.Context(), step.Call{ID: "s1c1"}, "a"+strings.Repeat("é", 50_000))
		if !utf8.ValidString(got) || len(got) > max(bytes, 300) || !strings.Contains(got, "it has 100001 bytes") ||
			!strings.HasSuffix(got, "could not be kept: no space left. Ask for less at once.]") {
			t.Errorf("of %d bytes: %d bytes that end %q", bytes, len(got), got[max(0, len(got)-200):])
		}
	}
}

// What is offloaded can be read with the tools that the text names, whatever
// was in it.
func TestAnOffloadedResultIsText(t *testing.T) {
	b := backend.New(state.New(state.Options{}), nil)
	New(ToBackend(b), Options{}).Text(t.Context(), step.Call{ID: "s1c1"}, "\x00\xff\n"+numbered(100_000))
	page, err := b.Read(t.Context(), "s1c1", backend.Window{Limit: 2})
	if diff := cmp.Diff([]string{"\ufffd\ufffd", "line 1"}, page.Lines); diff != "" || err != nil {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
}

func TestFileName(t *testing.T) {
	seen := map[string]string{}
	for _, id := range []string{
		"s3c1", "s3c1.s2c1", "", "..", ".", "../../etc/passwd", "a/b", "a_b", `a\b`, "a\x00b", "~", "☃",
		strings.Repeat("x", 300), strings.Repeat("x", 301), strings.Repeat("x", 200),
	} {
		name := fileName(id)
		if clean, err := backend.Clean(name); err != nil || clean != name || strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") {
			t.Errorf("fileName(%q) = %q, error %v", id, name, err)
		}
		if other, taken := seen[name]; taken {
			t.Errorf("%q and %q are both %q", id, other, name)
		}
		seen[name] = id
	}
	if got := fileName("s3c1.s2c1"); got != "s3c1.s2c1" {
		t.Errorf("the name of a call of ours is %q", got)
	}
}
