package session

import (
	"context"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Searcher is a Store that finds words by itself, for example with an index. Of a Store
// that does not, the tool Recall reads one session after another, and not all of many.
type Searcher interface {
	// Search returns the sessions that a query selects and in which each of the words occurs:
	// at most the Limit of the query, those with most occurrences first and of equals the last
	// updated. The Cursor of the query has no effect. The words are different and in lower
	// case. A text has a word in upper or lower case, also as a part of a longer word.
	Search(ctx context.Context, q Query, words []string) ([]Match, error)
}

// MaxExcerpt is how many bytes an excerpt may have.
const MaxExcerpt = 8 << 10

// A Match is a session in which each of the words of a search occurs.
type Match struct {
	Row Row
	// Count is how often the words occur in the texts of the session.
	Count int
	// Seq is the number of the step with most of the words; of equals it has the most
	// occurrences, and of equals it is the first. Role is the role of the step.
	Seq  int64
	Role step.Role
	// Excerpt has the lines of the text of that step around a word.
	Excerpt string
}
