// Package workspace initializes the working directory of a Run, publishes it as a
// branch, and lists the files that are new.
//
// [Fetch] clones a git repository and copies files of ConfigMaps, once in a Run. It
// stages them in a directory of the same volume, moves them into place, and then
// records the stage in the state directory, which the model cannot access. A later
// attempt continues from the recorded stage and never overwrites files.
//
//	nothing ──clone, check out, copy──▶ staged ──move into place──▶ done
//	   ▲                │
//	   └─── discarded ──┘ crash
//
// Runs that share a workspace have separate state directories. The clone and the
// record are then in a directory that they share ([Options.Origin]). The first Run
// that names a repository fetches it; another repository or revision is refused.
// Files of ConfigMaps are copied only where no file exists. A lock on that directory
// serializes the Runs; the next Run completes what a crashed one has begun.
//
// [Publish] makes one commit of the files of the workspace, in the bare clone in the
// state directory, and pushes it as a branch. Package workspace/git does this with
// files that an attacker may write to. The branch is only moved forward from the
// last commit of this Run.
//
// [Begin] records the files at the start, and [Artifacts] lists files that are new or
// changed since.
package workspace
