// Package git speaks to git servers, and keeps and makes commits, for the files
// of a workspace that somebody hostile may write to.
//
// A [Remote] is the server of a repository, with the credentials for it. It is
// spoken to in git's own protocol over HTTP or ssh by this package alone: no
// program is run, no configuration is read (neither of a user, nor of the
// system, nor of ssh), no redirect is followed, and neither memory nor time
// without a bound is spent on an answer. Of go-git come the formats.
//
// A [Store] is a bare repository in a directory that only the runner sees.
// [Remote.Clone] fills it, [Store.CheckOut] copies a commit out of it,
// [Store.Snapshot] makes a tree of what has become of the copy, [Store.Commit] a
// commit of that, and [Remote.Push] sends it. What a commit is made of is read
// through an os.Root, as bytes: a .git in the workspace is left out, whatever it
// is, and no attribute, filter or hook is looked at.
//
// Errors are sentences for people. A [RefusedError] is one that trying again
// does not mend; no error holds a credential.
package git
