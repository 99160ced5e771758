// Package offload stores large tool results in files. The model reads the path, the beginning and the end. Each result
// is handled once, before it is recorded, so that every later request has the same text. If a result cannot be stored,
// it is truncated and says so: it is never sent whole.
package offload

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// DefaultBytes is the maximum size of a result: about 20,000 tokens.
const DefaultBytes = 80_000

// DefaultDir is the directory where the model finds stored results.
const DefaultDir = "/results"

// Bounds of the excerpt of a stored result.
const (
	edge     = 5     // lines at either end
	maxChars = 1_000 // characters of one of them
)

// Options configure an Offloader. The zero value has the defaults.
type Options struct {
	// Bytes is the maximum size of a result that is not stored.
	Bytes int
	// Dir is the model's path of the directory that write writes to.
	Dir string
	// Exempt reports which tools keep results of any size, because they bound them themselves: the tools that read
	// stored results must not have their own results stored. Nil: none.
	Exempt func(tool string) bool
}

// A Write writes a text to a file of that name and replaces an existing one.
type Write func(ctx context.Context, name, text string) error

// An Offloader stores large results elsewhere.
type Offloader struct {
	write Write
	opts  Options
}

// New makes an Offloader.
func New(write Write, o Options) *Offloader {
	o.Bytes = cmp.Or(o.Bytes, DefaultBytes)
	o.Dir = cmp.Or(o.Dir, DefaultDir)
	if o.Exempt == nil {
		o.Exempt = func(string) bool { return false }
	}
	return &Offloader{write: write, opts: o}
}

// ToBackend writes to the root of a backend.
func ToBackend(b *backend.Backend) Write {
	return func(ctx context.Context, name, text string) error {
		_, err := b.Write(ctx, name, []byte(text), backend.Any)
		return err
	}
}

// Text returns the text of a call's result for the model: the same text, unless it is too large.
func (o *Offloader) Text(ctx context.Context, call step.Call, text string) string {
	if len(text) <= o.opts.Bytes || o.opts.Exempt(call.Name) {
		return text
	}
	// The file is to be read as text: what is none would not be.
	text = strings.ReplaceAll(strings.ToValidUTF8(text, string(utf8.RuneError)), "\x00", string(utf8.RuneError))
	name := fileName(call.ID)
	if err := o.write(ctx, name, text); err != nil {
		return o.cut(text, err)
	}
	return preview(path.Join(o.opts.Dir, name), text)
}

// preview returns the text that replaces a stored result.
func preview(at, text string) string {
	head, tail, count := ends(text)
	var b strings.Builder
	fmt.Fprintf(&b, "The result is large: %d bytes in %d lines, about %d tokens. All of it is in the file %s.\n"+
		"Read that in parts, with offset and limit, or look for what you need in it with Grep; do not read it whole.\n\n",
		len(text), count, len(text)/4, at)
	if len(tail) == 0 {
		b.WriteString("Its lines, cut where they are long:\n\n")
	} else {
		fmt.Fprintf(&b, "Its first %d lines:\n\n", edge)
	}
	for _, line := range head {
		b.WriteString(shorten(line) + "\n")
	}
	if len(tail) > 0 {
		fmt.Fprintf(&b, "\n[%d lines are left out here]\n\nIts last %d lines:\n\n", count-len(head)-len(tail), edge)
	}
	for _, line := range tail {
		b.WriteString(shorten(line) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// cut returns the text for a result that could not be stored: its beginning, within the bound, and why the rest is
// missing.
func (o *Offloader) cut(text string, err error) string {
	note := fmt.Sprintf("\n\n[The result is cut here: it has %d bytes, of which at most %d are shown, and the rest could not be kept: %s. "+
		"Ask for less at once.]", len(text), o.opts.Bytes, shorten(err.Error()))
	return clip(text, max(0, o.opts.Bytes-len(note))) + note
}

// clip returns the first bytes of a text, whole characters.
func clip(text string, most int) string {
	for most > 0 && most < len(text) && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:min(most, len(text))]
}

// ends returns the first and the last lines of a text, and how many there are.
// A text of few lines is all head.
func ends(text string) (head, tail []string, count int) {
	text = strings.TrimSuffix(text, "\n")
	count = strings.Count(text, "\n") + 1
	if count <= 2*edge {
		return strings.Split(text, "\n"), nil, count
	}
	head = strings.SplitN(text, "\n", edge+1)[:edge]
	rest := text
	for range edge {
		i := strings.LastIndexByte(rest, '\n')
		tail = append([]string{rest[i+1:]}, tail...)
		rest = rest[:i]
	}
	return head, tail, count
}

// shorten cuts a line that is long.
func shorten(line string) string {
	n := 0
	for i := range line {
		if n == maxChars {
			return line[:i] + "…"
		}
		n++
	}
	return line
}

// maxName is how many bytes of an id a file's name has.
const maxName = 200

// fileName returns a file name for the id of a call. Different ids have different names.
func fileName(id string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-', r == '.':
			return r
		}
		return '_'
	}, id)
	name = name[:min(len(name), maxName)]
	if name == "" || strings.HasPrefix(name, ".") {
		name = "_" + name
	}
	if name == id {
		return name
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // a hash takes everything
	return fmt.Sprintf("%s-%016x", name, h.Sum64())
}
