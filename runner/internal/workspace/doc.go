// Package workspace fills the directory that a Run works in before the work
// begins, publishes what has become of it when it ends, and says which files are
// new.
//
// [Fetch] clones a git repository and copies files of ConfigMaps, once in the
// life of the Run: what is done is recorded in the state directory, which the
// model does not see, last of all. It is put together beside the work, in a
// directory of the same volume, and moved into place; an attempt that comes
// later, or after a crash, goes on from there and never overwrites anything.
//
//	nothing ──clone, check out, copy──▶ staged ──move into place──▶ done
//	   ▲                │
//	   └── thrown away ─┘ crash
//
// Where Runs share a workspace, each with a state directory of its own, the clone
// and the record of what was fetched are in a directory that they share too
// ([Options.Origin]). The first Run that names a repository fetches it, another
// repository or revision is refused, and files of ConfigMaps are put where there
// is nothing yet: nobody's work is overwritten. A lock on that directory lets one
// of them work at a time; what one left half done, the next finishes.
//
// [Publish] makes one commit of the files of the workspace, in the bare clone
// that is kept in the state directory, and pushes it as a branch; package
// workspace/git says how, with files that an attacker may write to. The branch is
// only ever moved forward from where this Run has left it.
//
// [Begin] takes down which files there are, [Artifacts] finds those that have
// come or changed since, whoever wrote them.
package workspace
