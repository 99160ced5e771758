package shell

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxLine bounds a command line that is parsed, in bytes. A longer one is opaque
// and runs all that it names.
const MaxLine = 64 << 10

// A Dialect is the shell that a line is for.
type Dialect string

// The dialects.
const (
	// Bash is bash.
	Bash Dialect = "bash"
	// POSIX is any sh: dash, the sh of busybox, bash by that name. They read some
	// lines differently, so a line runs what any of them would run.
	POSIX Dialect = "sh"
)

// A Line is a command line that was read.
type Line struct {
	commands []command
	hidden   []string
	unread   []string // pieces that could not be parsed
}

// A command is one simple command: a program and its words.
type command struct {
	program string // as it is written, quotes taken off
	words   []word
}

// Read reads a command line. What cannot be read makes the Line opaque.
func Read(line string, dialect Dialect) *Line {
	r := &reader{dialect: dialect}
	switch {
	case len(line) > MaxLine:
		r.give(line, fmt.Sprintf("the line is longer than %d KiB", MaxLine>>10))
	case strings.ContainsAny(line, "\x00\r") || !utf8.ValidString(line):
		r.hide("the line contains characters that shells read differently")
		r.script(strings.ToValidUTF8(strings.NewReplacer("\x00", "", "\r", " ").Replace(line), ""))
	default:
		r.script(line)
	}
	if r.spent() {
		r.give(line, "the line is too involved to be followed")
	}
	return &r.line
}

// Opaque reports whether the line executes something that it does not show: a
// script, code for an interpreter, a program whose name is only known when it
// runs, or anything at all when it could not be read.
func (l *Line) Opaque() bool { return len(l.hidden) > 0 }

// Hidden says, for people, what makes the line opaque: at most five reasons.
func (l *Line) Hidden() []string { return l.hidden }

const (
	maxHidden = 5  // reasons why a line is opaque
	maxQuoted = 60 // characters of the line that a reason repeats
)

// hide notes that something is executed that the line does not show.
func (r *reader) hide(why string) {
	if len(r.line.hidden) < maxHidden && !slices.Contains(r.line.hidden, why) {
		r.line.hidden = append(r.line.hidden, why)
	}
}

// give gives a piece of the line up: it is opaque, and runs what it names.
func (r *reader) give(text, why string) {
	r.hide(why)
	r.line.unread = append(r.line.unread, text)
}

// shorten bounds what a reason repeats of the line.
func shorten(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, s[:min(len(s), 4*maxQuoted)])
	if runes := []rune(strings.ToValidUTF8(s, "")); len(runes) > maxQuoted {
		return string(runes[:maxQuoted]) + "…"
	}
	return strings.ToValidUTF8(s, "")
}

// Len is the number of commands of the line, as far as it was read.
func (l *Line) Len() int { return len(l.commands) + len(l.unread) }
