// Package wordsearch finds words in the steps of a session.
package wordsearch

import (
	"iter"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// Around is how many lines an excerpt has before and after the line with a word.
const Around = 2

// MaxLine is how many characters of a line are shown. An excerpt has one more of a longer
// line, so that a reader can tell that it is cut.
const MaxLine = 300

// In searches the steps of a session for words, which are different and in lower case. The
// result is false if one of them does not occur, or if reading fails.
func In(row session.Row, steps iter.Seq2[step.Step, error], words []string) (session.Match, bool, error) {
	counts := make([]int, len(words))
	var best finding
	for one, err := range steps {
		if err != nil {
			return session.Match{}, false, err
		}
		best = best.or(count(one, words, counts))
	}
	m := session.Match{Row: row, Seq: best.seq, Role: best.role, Excerpt: best.excerpt}
	for _, n := range counts {
		if n == 0 {
			return session.Match{}, false, nil
		}
		m.Count += n
	}
	return m, true, nil
}

// A finding is a step that has some of the words.
type finding struct {
	words, count int
	seq          int64
	role         step.Role
	excerpt      string
}

// or returns the finding with more of the words; of equals, the first.
func (f finding) or(g finding) finding {
	if g.words > f.words || g.words == f.words && g.count > f.count {
		return g
	}
	return f
}

// count counts the words in a step, and adds them to those of its session.
func count(one step.Step, words []string, counts []int) finding {
	f := finding{seq: one.Seq, role: one.Role}
	text := one.Text()
	lower := strings.ToLower(text)
	rarest, least := "", 0
	for i, word := range words {
		n := strings.Count(lower, word)
		counts[i] += n
		f.count += n
		if n == 0 {
			continue
		}
		f.words++
		if least == 0 || n < least {
			rarest, least = word, n
		}
	}
	if f.words > 0 {
		f.excerpt = excerpt(text, rarest)
	}
	return f
}

// excerpt returns the lines around the first that has a word. It does not keep the text in memory.
func excerpt(text, word string) string {
	lines := strings.Split(text, "\n")
	at := 0
	for i, line := range lines {
		if strings.Contains(strings.ToLower(line), word) {
			at = i
			break
		}
	}
	var shown []string
	for _, line := range lines[max(at-Around, 0):min(at+Around+1, len(lines))] {
		shown = append(shown, cut(about(line, word)))
	}
	return strings.Clone(strings.Join(shown, "\n"))
}

// about returns a part of a line around the first word: if that is far from the beginning, the text before it is left
// out.
func about(line, word string) string {
	i := strings.Index(strings.ToLower(line), word)
	if i < MaxLine/2 || i > len(line) { // lower case may be longer
		return line
	}
	return "…" + strings.ToValidUTF8(line[i-MaxLine/4:], "")
}

// cut bounds a line.
func cut(line string) string {
	n := 0
	for i := range line {
		if n > MaxLine {
			return line[:i]
		}
		n++
	}
	return line
}
