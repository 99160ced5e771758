package shell

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds of the work for one line. A line that exceeds one is opaque.
const (
	maxNested = 8       // lines within lines: sh -c "sh -c '…'"
	maxFrames = 1500    // of the stack, while a line is parsed
	maxDepth  = 2000    // of a syntax tree
	maxSteps  = 1 << 17 // words that are visited, some of them again
)

// A reader collects the commands of a line, and of the lines that are words of
// its commands.
type reader struct {
	*findings

	dialect Dialect
	nested  int
	text    string // of the innermost line
}

// script parses a command line, which may be a word of another.
func (r *reader) script(text string) {
	if r.nested >= maxNested {
		r.skip(text, "command lines within command lines, nested too deep")
		return
	}
	if !r.step(len(text) / 8) {
		return
	}
	outer := r.text
	r.nested, r.text = r.nested+1, text
	defer func() { r.nested, r.text = r.nested-1, outer }()
	if r.dialect == POSIX {
		r.bothDialects(text)
		return
	}
	file, err := parse(text, syntax.LangBash)
	if err == nil {
		walk(r, file, text)
		return
	}
	r.skip(text, fmt.Sprintf("it cannot be parsed as a command line: %q", excerpt(text)))
	if file, err := parse(text, syntax.LangPOSIX); err == nil {
		walk(r, file, text)
	}
}

// bothDialects parses a line as bash and as a plain sh, because sh may be either.
func (r *reader) bothDialects(text string) {
	plain, plainErr := parse(strings.ReplaceAll(text, "&>", "& >"), syntax.LangPOSIX) // only bash has &>
	if plainErr == nil {
		walk(r, plain, text)
	}
	bash, bashErr := parse(text, syntax.LangBash)
	if bashErr == nil {
		walk(r, bash, text)
	}
	if bashErr != nil || plainErr != nil && unlikeSh(text) {
		r.skip(text, fmt.Sprintf("shells parse this differently, or not at all: %q", excerpt(text)))
	}
}

// unlikeSh reports whether a plain sh may find commands where bash finds none.
func unlikeSh(text string) bool {
	return strings.Contains(text, "[[") || strings.Contains(text, "((") || strings.Contains(text, "$'")
}

// skipWords makes the line opaque because words are not followed. A word that
// looks like a command line is parsed as one.
func (r *reader) skipWords(words []word, reason string) {
	r.markOpaque(reason)
	if !r.step(len(words)) {
		return
	}
	var text strings.Builder
	var part skipped
	for _, w := range words {
		text.WriteString(w.text + " ")
		part.open = part.open || !w.known
		if w.known && strings.ContainsAny(w.text, " \t\n;|&$`<>") {
			r.script(w.text)
		}
	}
	part.text = text.String()
	r.skipPart(part, reason)
}

var errDeep = errors.New("nested too deep")

// parse returns the syntax tree of a line. A panic of the parser is an error.
func parse(text string, lang syntax.LangVariant) (file *syntax.File, err error) {
	defer func() {
		if failure := recover(); failure != nil {
			file, err = nil, fmt.Errorf("parsing: %v", failure)
		}
	}()
	var stack [256]uintptr
	source := &source{text: strings.NewReader(text), base: runtime.Callers(0, stack[:])}
	file, err = syntax.NewParser(syntax.Variant(lang), syntax.KeepComments(true)).Parse(source, "")
	if source.deep {
		return nil, errDeep
	}
	return file, err
}

// A source is the text for the parser, which is recursive: reads fail when the
// stack of the parser has grown too high.
type source struct {
	text io.Reader
	base int
	deep bool
}

// Read implements [io.Reader].
func (s *source) Read(p []byte) (int, error) {
	s.deep = s.deep || hasFrames(s.base+maxFrames)
	if s.deep {
		return 0, errDeep
	}
	return s.text.Read(p)
}

// hasFrames reports whether the stack has more frames than this.
func hasFrames(many int) bool {
	var pc [1]uintptr
	return runtime.Callers(many, pc[:]) > 0
}
