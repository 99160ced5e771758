package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/weburl"
)

// workspace is where relative paths of file tools begin.
const workspace = "/workspace"

// roots are the directories whose files the tools reach.
var roots = []string{workspace, "/tmp", "/results", "/memories"}

// isOutside reports whether no path of a file tool is an absolute path, or, if it is a prefix,
// begins with it. The root itself can be listed.
func isOutside(literal string, isPrefix bool) bool {
	return path.IsAbs(literal) && literal != "/" && !slices.ContainsFunc(roots, func(root string) bool {
		return literal == root || strings.HasPrefix(literal, root+"/") || isPrefix && strings.HasPrefix(root, literal)
	})
}

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

// inWorkspace returns a relative path, or one that file tools cannot reach, as a path below the workspace.
func inWorkspace(literal string) string { return workspace + "/" + strings.TrimPrefix(literal, "/") }

// wholePath is an absolute path without detours.
func wholePath(literal string) (string, error) {
	clean := path.Clean(literal)
	if !path.IsAbs(clean) || isOutside(clean, false) {
		clean = path.Clean(inWorkspace(clean))
	}
	return clean, nil
}

// pathPrefix is wholePath of all directories, followed by the begin of a name.
func pathPrefix(literal string) (string, error) {
	if literal == "" {
		return "", nil
	}
	if !path.IsAbs(literal) {
		literal = inWorkspace(literal)
	}
	dir, name := path.Split(literal)
	clean := strings.TrimSuffix(path.Clean(dir), "/") + "/" + name
	if isOutside(clean, true) {
		clean = inWorkspace(clean)
	}
	return clean, nil
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
