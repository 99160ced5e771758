// Package modelname matches the names of models as their providers write them: with dates, versions
// and paths.
package modelname

import (
	"regexp"
	"strings"
)

// version matches the parts of a version that may follow or separate the names of a model and its fixed versions. Any
// other word means another model, which may have other prices: gpt-5-pro costs twelve times as much as gpt-5.
var version = regexp.MustCompile(`^([-@:._]?(20[0-9]{6}|20[0-9]{2}-[0-9]{2}-[0-9]{2}|[0-9]{2}-[0-9]{2}|[0-9]{3,4}|v[0-9]+|:[0-9]|latest|preview|exp))*$`)

// dated is the date at the end of the name of a fixed version of a model.
var dated = regexp.MustCompile(`-20[0-9]{2}-?[0-9]{2}-?[0-9]{2}$`)

// begunNumber is a number, at the end of the text of a clause, that the name of a model continues.
var begunNumber = regexp.MustCompile(`[-@:._][0-9]+-?$`)

// fineTuned matches the names of fine-tuned models. The owner chooses the text after the name of the base model, which
// does not affect the price.
var fineTuned = regexp.MustCompile(`^(ft:[^:]+):.*$|^(.+\.ft-).*$`)

// ownModel is before the name of the base model in the path of a fine-tuned model.
var ownModel = regexp.MustCompile(`ft:|tuned|custom`)

// Forms returns the names to look up, in order: the name of the model, and the name without its date. For a fine-tuned
// model this is its name without the owner's part, which differs from its base model because it costs more.
func Forms(name string) []string {
	name = strings.ToLower(strings.TrimPrefix(name, "models/"))
	name = fineTuned.ReplaceAllString(name, "$1$2")
	return []string{name, dated.ReplaceAllString(name, "")}
}

// Fits reports whether a form of a name fits one of several alternatives, each of them clauses that
// all must hold: =equal, ^prefix, ~part, $suffix, /expression or !expression, which must not match.
// Behind a prefix, a part and an expression only a version may follow.
func Fits(match [][]string, form string) bool {
	for _, clauses := range match {
		fits := len(clauses) > 0
		for _, c := range clauses {
			fits = fits && holds(c, form)
		}
		if fits {
			return true
		}
	}
	return false
}

// IsVersionOf reports whether a form of a name belongs to a family of models, or to a version of it.
func IsVersionOf(family, form string) bool { return holds("^"+family, form) }

// holds reports whether a clause holds for the name of a model.
func holds(clause, name string) bool {
	text := clause[1:]
	switch clause[0] {
	case '=':
		return name == text
	case '^':
		return strings.HasPrefix(name, text) && isVersion(text, name[len(text):])
	case '~':
		before, rest, found := strings.Cut(name, text)
		return found && isPath(before) && isVersion(text, rest)
	case '$':
		before, found := strings.CutSuffix(name, text)
		return found && isPath(before)
	case '/':
		return holdsExpression(text, name)
	case '!':
		matches, err := regexp.MatchString(text, name)
		return err == nil && !matches
	}
	return false
}

// holdsExpression reports whether a regular expression matches the name of a model, and the name has only a path before
// the literal beginning of the expression and only a version after it.
func holdsExpression(text, name string) bool {
	e, err := regexp.Compile(text)
	if err != nil || !e.MatchString(name) {
		return false
	}
	open, err := regexp.Compile(strings.TrimPrefix(text, "^"))
	if err != nil {
		return false
	}
	fixed, _ := open.LiteralPrefix()
	before, rest, found := strings.Cut(name, fixed)
	return fixed != "" && found && isPath(before) && isVersion(fixed, rest)
}

// isVersion reports whether the rest of a name after the text of a clause is a version. The text may include the
// beginning of the version: for gemini-2.0-flash-001 it is gemini-2.0-flash-0.
func isVersion(text, rest string) bool {
	if version.MatchString(rest) {
		return true
	}
	return rest != "" && version.MatchString(begunNumber.FindString(text)+rest)
}

// isPath reports whether the text before the name of a model is a path of its host.
func isPath(before string) bool {
	return before == "" || strings.ContainsRune("/.:", rune(before[len(before)-1])) && !ownModel.MatchString(before)
}
