package listprices

import (
	"regexp"
	"strings"
)

// version is what may follow or stand between the names of a model and of its fixed versions. Any
// other word is another model, which may have other prices: gpt-5-pro costs twelve times gpt-5.
var version = regexp.MustCompile(`^([-@:._]?(20[0-9]{6}|20[0-9]{2}-[0-9]{2}-[0-9]{2}|[0-9]{2}-[0-9]{2}|[0-9]{3,4}|v[0-9]+|:[0-9]|latest|preview))*$`)

// dated is the date at the end of the name of a fixed version of a model.
var dated = regexp.MustCompile(`-20[0-9]{2}-?[0-9]{2}-?[0-9]{2}$`)

// find returns the first row for the name of a model, or for the name without its date.
func find(rows []Row, name string) (Row, bool) {
	name = strings.ToLower(strings.TrimPrefix(name, "models/"))
	for _, n := range []string{name, dated.ReplaceAllString(name, "")} {
		for _, r := range rows {
			if r.fits(n) {
				return r, true
			}
		}
	}
	return Row{}, false
}

func (r Row) fits(name string) bool {
	for _, clauses := range r.Match {
		fits := len(clauses) > 0
		for _, c := range clauses {
			fits = fits && holds(c, name)
		}
		if fits {
			return true
		}
	}
	return false
}

// holds reports whether a clause holds for the name of a model.
func holds(clause, name string) bool {
	text := clause[1:]
	switch clause[0] {
	case '=':
		return name == text
	case '^':
		rest, found := strings.CutPrefix(name, text)
		return found && version.MatchString(rest)
	case '~':
		before, rest, found := strings.Cut(name, text)
		return found && isPath(before) && version.MatchString(rest)
	case '$':
		before, found := strings.CutSuffix(name, text)
		return found && isPath(before)
	case '/', '!':
		matches, err := regexp.MatchString(text, name)
		return err == nil && matches == (clause[0] == '/')
	}
	return false
}

// isPath reports whether the text before the name of a model says where it is served.
func isPath(before string) bool {
	return before == "" || strings.ContainsRune("/.:", rune(before[len(before)-1]))
}
