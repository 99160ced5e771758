package git

import (
	"encoding/hex"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

const (
	headsPrefix = "refs/heads/"
	tagsPrefix  = "refs/tags/"
)

// minAbbreviation is the shortest commit that is taken for one, in digits.
const minAbbreviation = 4

// A cloneRequest is what a clone asks a server for.
type cloneRequest struct {
	wants []plumbing.Hash
	// ref is the branch or tag that was named; empty: a commit was.
	ref plumbing.ReferenceName
	// commit is what is to be checked out, a tag's object or the beginning of a
	// commit's name in hexadecimal.
	commit string
	depth  int
	// notes are for the log.
	notes []string
}

// resolve returns the request for a revision: as in git, a branch before a tag before a
// commit.
func resolve(adv *packp.AdvRefs, revision string, depth int) (cloneRequest, error) {
	if format := adv.Capabilities.Get(capability.Capability("object-format")); len(format) > 0 && format[0] != "sha1" {
		return cloneRequest{}, Refused("The repository names its commits by %s; only sha1 is supported.", printable(format[0]))
	}
	if len(adv.References) == 0 {
		return cloneRequest{}, Refused("The repository is empty: push a first commit to it.")
	}
	if depth > 0 && !adv.Capabilities.Supports(capability.Shallow) {
		return cloneRequest{}, Refused("The git server cannot give a part of the history: leave the depth out.")
	}
	if revision == "" {
		return head(adv, depth)
	}
	for _, prefix := range []string{headsPrefix, tagsPrefix, "refs/", ""} {
		name := prefix + revision
		if at, ok := adv.References[name]; ok && strings.HasPrefix(name, "refs/") {
			return cloneRequest{wants: []plumbing.Hash{at}, ref: plumbing.ReferenceName(name), commit: at.String(), depth: depth}, nil
		}
	}
	if isCommit(revision) {
		return commitOf(adv, strings.ToLower(revision), depth), nil
	}
	return cloneRequest{}, unknownRevision(adv, revision)
}

// unknownRevision returns an error that lists existing branches.
func unknownRevision(adv *packp.AdvRefs, revision string) error {
	const most = 10
	var branches []string
	for name := range adv.References {
		if short, ok := strings.CutPrefix(name, headsPrefix); ok {
			branches = append(branches, printable(short))
		}
	}
	slices.Sort(branches)
	if len(branches) > most {
		branches = append(branches[:most], "and others")
	}
	return Refused("The repository has no branch, tag or commit %q. Its branches are: %s.", printable(revision), strings.Join(branches, ", "))
}

// head returns the request for the default branch.
func head(adv *packp.AdvRefs, depth int) (cloneRequest, error) {
	if adv.Head == nil {
		return cloneRequest{}, Refused("The repository has no default branch: name the revision to use.")
	}
	g := cloneRequest{wants: []plumbing.Hash{*adv.Head}, commit: adv.Head.String(), depth: depth}
	for _, link := range adv.Capabilities.Get(capability.SymRef) {
		if to, ok := strings.CutPrefix(link, "HEAD:"); ok && adv.References[to] == *adv.Head {
			g.ref = plumbing.ReferenceName(to)
		}
	}
	return g, nil
}

// isCommit reports whether a revision may be a commit, in whole or in part.
func isCommit(revision string) bool {
	if len(revision) < minAbbreviation || len(revision) > 40 {
		return false
	}
	_, err := hex.DecodeString(revision + strings.Repeat("0", len(revision)%2))
	return err == nil
}

// commitOf returns the request for a commit: for the commit itself if the server allows
// that, otherwise for all branches and tags.
func commitOf(adv *packp.AdvRefs, revision string, depth int) cloneRequest {
	all := make([]plumbing.Hash, 0, len(adv.References))
	for name, at := range adv.References {
		if len(revision) == 40 && at.String() == revision {
			return cloneRequest{wants: []plumbing.Hash{at}, commit: revision, depth: depth}
		}
		if strings.HasPrefix(name, headsPrefix) || strings.HasPrefix(name, tagsPrefix) {
			all = append(all, at)
		}
	}
	if len(revision) == 40 && (adv.Capabilities.Supports(capability.AllowReachableSHA1InWant) || adv.Capabilities.Supports("allow-any-sha1-in-want")) {
		return cloneRequest{wants: []plumbing.Hash{plumbing.NewHash(revision)}, commit: revision, depth: depth}
	}
	g := cloneRequest{wants: all, commit: revision}
	if depth > 0 {
		g.notes = []string{"The git server gives a commit only with all of its history, so the depth has no effect"}
	}
	return g
}
