package text

import "github.com/deckhand-dev/deckhand/runner/backend"

// A Search gathers the lines that a query asks for, one file after the other.
type Search struct {
	// Found is what was found so far; whoever searches says whether it is all.
	Found   backend.Matches
	query   backend.Query
	pattern *Pattern
}

// Room says whether a search goes on.
type Room string

// Whether a search goes on.
const (
	Left Room = "Left" // there is room for more matches
	Full Room = "Full" // there was one match too many
)

// NewSearch compiles the pattern of a query and clamps its limit.
func NewSearch(q backend.Query) (Search, error) {
	p, err := CompileQuery(q)
	if err != nil {
		return Search{}, err
	}
	if q.Limit < 1 || q.Limit > backend.MaxMatches {
		q.Limit = backend.MaxMatches
	}
	return Search{query: q, pattern: p}, nil
}

// In adds the matches of the file of that name. A binary file has none.
func (s *Search) In(name string, data []byte) Room {
	if Binary(data) {
		return Left
	}
	room := Left
	var first *backend.Match
	s.pattern.Find(data, func(line int, content []byte) bool {
		if first != nil {
			first.Count++
			return true
		}
		if len(s.Found.Items) == s.query.Limit {
			room = Full
			return false
		}
		s.Found.Items = append(s.Found.Items, backend.Match{Path: name, Line: line, Text: s.pattern.Excerpt(content)})
		if s.query.ByFile {
			first = &s.Found.Items[len(s.Found.Items)-1]
			first.Count = 1
		}
		return true
	})
	return room
}
