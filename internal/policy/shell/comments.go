package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// comments finds those that bash reads differently. For bash a comment ends with
// its line; the parser continues one that ends in a backslash, or rather the line
// before the comment. The text is read again without those backslashes. And where
// a comment follows a word without a blank, bash takes it for a part of the word.
func (r *reader) comments(file *syntax.File, text string) {
	continued, glued := false, false
	syntax.Walk(file, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.Comment); ok {
			before := text[:min(len(text), int(c.Hash.Offset()))]
			continued = continued || strings.HasSuffix(c.Text, "\\\n")
			glued = glued || isGlued(before)
		}
		return true
	})
	if glued {
		r.hide("a comment that bash may take for a word")
	}
	if !continued {
		return
	}
	r.hide("a comment that ends in a backslash, which shells read differently")
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if before, ok := strings.CutSuffix(line, "\\\n"); ok && strings.Contains(line, "#") {
			lines[i] = before + "\n"
		}
	}
	if again := strings.Join(lines, ""); again != text {
		r.script(again)
	}
}

// isGlued reports whether a comment behind this text may be a part of a word.
func isGlued(before string) bool {
	return before != "" && strings.TrimRight(before, " \t\n;&|()`") == before || strings.HasSuffix(before, "\\\n")
}
