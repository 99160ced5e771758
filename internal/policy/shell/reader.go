package shell

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds of what one line makes a reader do. A line that exceeds one is opaque.
const (
	maxNested = 8       // lines within lines: sh -c "sh -c '…'"
	maxFrames = 1500    // of the stack, while a line is parsed
	maxDepth  = 2000    // of a syntax tree
	maxSteps  = 1 << 17 // words that are looked at, some of them again
)

// A reader collects what a line runs.
type reader struct {
	line    Line
	dialect Dialect
	text    string // what is being followed
	nested  int
	steps   int
	flat    bool // every word after a program that runs others is being tried
}

// step counts the words that are about to be looked at, and reports whether
// there may be more.
func (r *reader) step(words int) bool {
	r.steps += 1 + words
	return !r.spent()
}

func (r *reader) spent() bool { return r.steps > maxSteps }

// script reads a command line, or one that is a word of another.
func (r *reader) script(text string) {
	if r.nested >= maxNested {
		r.give(text, "command lines within command lines, too deep to be followed")
		return
	}
	if !r.step(len(text) / 8) {
		return
	}
	r.nested++
	flat := r.flat
	r.flat = false
	defer func() { r.nested--; r.flat = flat }()
	if r.dialect == POSIX {
		r.both(text)
		return
	}
	file, err := parse(text, syntax.LangBash)
	if err == nil {
		r.tree(file, text)
		return
	}
	r.give(text, fmt.Sprintf("it is no command line that can be read: %q", shorten(text)))
	if file, err := parse(text, syntax.LangPOSIX); err == nil {
		r.tree(file, text)
	}
}

// both reads a line as bash and as a plain sh: nobody knows which it is for.
func (r *reader) both(text string) {
	plain, plainErr := parse(strings.ReplaceAll(text, "&>", "& >"), syntax.LangPOSIX) // &> is for bash alone
	if plainErr == nil {
		r.tree(plain, text)
	}
	bash, bashErr := parse(text, syntax.LangBash)
	if bashErr == nil {
		r.tree(bash, text)
	}
	if bashErr != nil || plainErr != nil && unlikeSh(text) {
		r.give(text, fmt.Sprintf("shells read this differently, or not at all: %q", shorten(text)))
	}
}

// unlikeSh reports whether a plain sh may find commands where bash finds none.
func unlikeSh(text string) bool {
	return strings.Contains(text, "[[") || strings.Contains(text, "((") || strings.Contains(text, "$'")
}

var errDeep = errors.New("nested too deep")

// parse is the syntax tree of a line. A parser that fails in an unforeseen way
// has not read it.
func parse(text string, lang syntax.LangVariant) (file *syntax.File, err error) {
	defer func() {
		if failure := recover(); failure != nil {
			file, err = nil, fmt.Errorf("parsing: %v", failure)
		}
	}()
	source := &source{text: strings.NewReader(text), base: frames(0)}
	file, err = syntax.NewParser(syntax.Variant(lang), syntax.KeepComments(true)).Parse(source, "")
	if source.deep {
		return nil, errDeep
	}
	return file, err
}

// A source is the text for a parser, which is recursive: it ends when the stack
// below whoever reads it has grown too high.
type source struct {
	text io.Reader
	base int
	deep bool
}

// Read implements [io.Reader].
func (s *source) Read(p []byte) (int, error) {
	s.deep = s.deep || frames(s.base+maxFrames) > 0
	if s.deep {
		return 0, errDeep
	}
	return s.text.Read(p)
}

// frames counts the frames of the stack above the first few, up to a buffer full.
func frames(skip int) int {
	var pc [256]uintptr
	total := 0
	for {
		n := runtime.Callers(skip+total, pc[:])
		total += n
		if n < len(pc) || total > maxFrames {
			return total
		}
	}
}

// tree follows a syntax tree.
func (r *reader) tree(file *syntax.File, text string) {
	depth, deep := 0, false
	defer func(outer string) { r.text = outer }(r.text)
	r.text = text
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil {
			depth--
			return false
		}
		if depth >= maxDepth {
			deep = true
			return false
		}
		depth++
		r.node(n)
		r.differs(n)
		return true
	})
	r.comments(file, text)
	r.splitOperators(text)
	if deep {
		r.give(text, "the line is nested too deep to be followed")
	}
}
