package recall

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/wordsearch"
)

// A candidate is a file that has all the words so far.
type candidate struct {
	count int // lines that have one of them, word by word
	line  int // the first line that has the rarest
	least int // how many lines have that
}

// files finds the files that have all the words, and says whether there were
// too many to look at all.
func (r *recaller) files(ctx context.Context, words []string) ([]hit, bool, error) {
	if r.Files == nil {
		return nil, false, nil
	}
	var having map[string]candidate
	cut := false
	for i, word := range words {
		found, err := r.Files.Grep(ctx, backend.Query{Pattern: word, Fixed: true, IgnoreCase: true, ByFile: true})
		if err != nil {
			return nil, false, err
		}
		cut = cut || found.Truncated
		now := make(map[string]candidate, len(found.Items))
		for _, m := range found.Items {
			if before, ok := having[m.Path]; ok || i == 0 {
				now[m.Path] = before.with(m)
			}
		}
		having = now
	}
	times, err := r.ages(ctx, having)
	hits := make([]hit, 0, len(having))
	for name, c := range having {
		hits = append(hits, r.file(name, c, times[name]))
	}
	return hits, cut, err
}

// with adds what was found of one word.
func (c candidate) with(m backend.Match) candidate {
	if c.least == 0 || m.Count < c.least {
		c.least, c.line = m.Count, m.Line
	}
	c.count += m.Count
	return c
}

// ages says when files were last written.
func (r *recaller) ages(ctx context.Context, files map[string]candidate) (map[string]time.Time, error) {
	dirs, times := map[string]bool{}, map[string]time.Time{}
	for name := range files {
		dirs[path.Dir(name)] = true
	}
	for dir := range dirs {
		infos, err := r.Files.List(ctx, dir)
		if err != nil {
			return times, err
		}
		for _, i := range infos {
			times[i.Path] = i.ModTime
		}
	}
	return times, nil
}

func (r *recaller) file(name string, c candidate, at time.Time) hit {
	return hit{
		where: label(path.Join(r.Dir, name)), count: c.count, at: at,
		lines: func(ctx context.Context) ([]string, error) {
			from := max(c.line-1-wordsearch.Around, 0)
			p, err := r.Files.Read(ctx, name, backend.Window{Offset: from, Limit: c.line + wordsearch.Around - from})
			lines := make([]string, len(p.Lines))
			for i, line := range p.Lines {
				lines[i] = fmt.Sprintf("%d  %s", p.Start+i, plain(line, wordsearch.MaxLine))
			}
			return lines, err
		},
	}
}

// plain is a line of text as it is shown: valid, without what a terminal would
// obey, and not too long.
func plain(line string, most int) string {
	line = strings.Map(func(c rune) rune {
		if c != '\t' && unicode.IsControl(c) {
			return utf8.RuneError
		}
		return c
	}, line)
	n := 0
	for i := range line {
		if n == most {
			return line[:i] + "…"
		}
		n++
	}
	return line
}

// label is the name of a place. One that would break the line is quoted.
func label(name string) string {
	if strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}
