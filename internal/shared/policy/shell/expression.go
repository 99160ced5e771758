package shell

import (
	"regexp"
	"sync"
)

// An expression is a regular expression that is compiled when it is first used. A Run uses few of them, and all of them
// would take a tenth of its start.
type expression func() *regexp.Regexp

func lazy(text string) expression {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// MatchString reports whether a text has a match.
func (e expression) MatchString(text string) bool { return e().MatchString(text) }
