// Package shell finds the programs that a command line runs, and whether it runs something that it does not show.
//
// [Read] parses a line as bash or sh does and walks its syntax tree: lists, pipes, subshells and substitutions. It
// follows about ten well-known programs that run another one, for example sudo, env, xargs, find -exec and sh -c. Other
// programs that run a program, code or a file of commands are not followed. Those on the lists of names and options in
// launchers.go make the line opaque, with any version in the name: perl5.36 is perl. The lists are incomplete: a
// program that is not on them counts as a program that runs nothing else. Nothing is executed or looked up.
//
// In doubt a line is opaque, and [Line.Runs] is true for each word of a part that could not be followed, and for a word
// that is known only at run time.
//
// This informs users about what is going to run. It is not a security boundary: a model can use a launcher that is not
// listed, or write a program to a file and run it by a harmless name. The sandbox is the boundary.
package shell

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// MaxLine is the longest command line that is parsed, in bytes. A longer line is
// opaque and runs every program that it names.
const MaxLine = 64 << 10

// A Dialect is the shell that a line is for.
type Dialect string

// The dialects.
const (
	// Bash is bash.
	Bash Dialect = "bash"
	// POSIX is any sh: dash, the sh of busybox, or bash with that name. They parse some lines differently, so a line
	// counts as running everything that any of them would run.
	POSIX Dialect = "sh"
)

// A Line is a parsed command line.
type Line struct {
	commands []command
	skipped  []skipped
	reasons  []string
}

// A command is one simple command.
type command struct {
	program string // as written, without quotes
	words   []word
}

// A skipped part of a line was not followed: it may run each program that it names.
type skipped struct {
	text string
	open bool // has words that are only known when the line runs
}

// Read parses a command line. The Line is opaque if that fails.
func Read(line string, dialect Dialect) *Line {
	r := &reader{findings: &findings{}, dialect: dialect}
	switch {
	case len(line) > MaxLine:
		r.skip(line, fmt.Sprintf("the line is longer than %d KiB", MaxLine>>10))
	case strings.ContainsAny(line, "\x00\r") || !utf8.ValidString(line):
		r.markOpaque("the line contains characters that shells read differently")
		r.script(strings.ToValidUTF8(strings.NewReplacer("\x00", "", "\r", " ").Replace(line), ""))
	default:
		r.script(line)
	}
	if r.exhausted() {
		r.markOpaque("the line is too complex")
		r.line.skipped = append(r.line.skipped, skipped{text: line})
	}
	return &r.line
}

// Opaque reports whether the line executes something that it does not show: a
// script, code for an interpreter, a program whose name is only known when it
// runs, or anything at all if it could not be parsed.
func (l *Line) Opaque() bool { return len(l.reasons) > 0 }

// Reasons returns at most five reasons why the line is opaque.
func (l *Line) Reasons() []string { return l.reasons }

// Len returns the number of commands that were found.
func (l *Line) Len() int { return len(l.commands) + len(l.skipped) }

const (
	maxReasons = 5  // reasons why a line is opaque
	maxExcerpt = 60 // characters of the line in a reason
)

// findings are the findings about a line, with a bound of the work for it.
type findings struct {
	line  Line
	steps int
}

// step counts words before they are visited, and reports whether the bound allows
// it.
func (f *findings) step(words int) bool {
	f.steps += 1 + words
	return !f.exhausted()
}

func (f *findings) exhausted() bool { return f.steps > maxSteps }

// markOpaque records why the line is opaque.
func (f *findings) markOpaque(reason string) {
	if len(f.line.reasons) < maxReasons && !slices.Contains(f.line.reasons, reason) {
		f.line.reasons = append(f.line.reasons, reason)
	}
}

// skip makes the line opaque because a part of it is not followed.
func (f *findings) skip(text, reason string) {
	f.skipPart(skipped{text: text}, reason)
}

// skipPart records a skipped part once, because many comments may skip the same script. When the bound of steps is
// reached, Read skips the complete line.
func (f *findings) skipPart(part skipped, reason string) {
	f.markOpaque(reason)
	if !slices.Contains(f.line.skipped, part) && f.step(len(part.text)/8) {
		f.line.skipped = append(f.line.skipped, part)
	}
}

// excerpt bounds how much of the line a reason repeats.
func excerpt(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, s[:min(len(s), 4*maxExcerpt)])
	if runes := []rune(strings.ToValidUTF8(s, "")); len(runes) > maxExcerpt {
		return string(runes[:maxExcerpt]) + "…"
	}
	return strings.ToValidUTF8(s, "")
}

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
