package policy

import (
	"path"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/weburl"
)

// workspace is where relative paths of file tools begin.
const workspace = "/workspace"

// A canonicalArgument is one that tools of a kind have in canonical form before a
// rule sees it.
type canonicalArgument struct {
	kind Kind
	form string // what errors say of it
	// whole and prefix return what to write instead of a literal: the literal itself
	// if an argument in canonical form can equal it, or begin with it. An error says
	// why there is nothing to write; it reads as the end of a sentence.
	whole, prefix func(literal string) (string, error)
}

// canonicalArguments are all of them, by their names.
var canonicalArguments = map[string]canonicalArgument{
	"path":   {Files, "args.path of a file tool is canonical", wholePath, pathPrefix},
	"url":    {Web, "args.url is canonical", wholeURL, urlPrefix},
	"method": {Web, "args.method is in upper case", upperCase, upperCase},
}

// wholePath is an absolute path without detours.
func wholePath(literal string) (string, error) {
	if !path.IsAbs(literal) {
		literal = workspace + "/" + literal
	}
	return path.Clean(literal), nil
}

// pathPrefix is wholePath of all directories, followed by the begin of a name.
func pathPrefix(literal string) (string, error) {
	if literal == "" {
		return "", nil
	}
	if !path.IsAbs(literal) {
		literal = workspace + "/" + literal
	}
	dir, name := path.Split(literal)
	return strings.TrimSuffix(path.Clean(dir), "/") + "/" + name, nil
}

func wholeURL(literal string) (string, error) {
	u, err := weburl.Parse(literal)
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

func urlPrefix(literal string) (string, error) {
	if weburl.IsPrefix(literal) {
		return literal, nil
	}
	return wholeURL(literal)
}

func upperCase(literal string) (string, error) { return strings.ToUpper(literal), nil }
