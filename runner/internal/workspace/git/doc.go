// Package git speaks to git servers, and keeps and makes commits, for the files
// of a workspace that an attacker may write to.
//
// A [Remote] is the server of a repository, with the credentials for it. This package speaks git's own
// protocol over HTTP or ssh itself: it runs no program, reads no configuration (neither of a user, nor of the
// system, nor of ssh) and follows no redirect, and each answer is bounded in memory and time. The formats
// come from go-git.
//
// The transports of go-git v5.19.3 (below plumbing/transport) do not keep these
// bounds:
//
//   - Over HTTP a push is written into a buffer before it is sent
//     (http/receive_pack.go:42), over ssh it is not: 384 MiB for a pack of 256 MiB.
//     Here the pack is streamed, and at most 1 MiB of it is in memory.
//   - ssh connects through proxy.Dial (ssh/common.go:192), which reads ALL_PROXY,
//     with a context of its own (ssh/common.go:161) and no dialer to replace it. So
//     a server may be silent for ever, and ctx does not end the login.
//   - The refs that an ssh server lists are read without a limit
//     (internal/common/common.go:187), into which no reader can be put; of its
//     standard error the first line is returned after up to 10 s, and only as a text.
//   - The error line of a server loses its type (internal/common/common.go:488), by
//     which a refusal is distinguished from a broken connection.
//
// Over HTTP a RoundTripper could keep the other bounds, and the pack of a clone can
// be bounded before it is indexed. But a transport for clones over HTTP alone would
// take the place of none here: push and ssh need all of its code.
//
// A [Store] is a bare repository in a directory that only the runner sees. [Remote.Clone] fills it, [Store.CheckOut]
// copies a commit out of it, [Store.Snapshot] makes a tree of the changed copy, [Store.Commit] a commit of the tree,
// and [Remote.Push] sends it. The files of a commit are read through an os.Root, as bytes: a .git in the workspace is
// left out, whatever it is, and attributes, filters and hooks have no effect.
//
// Errors are sentences for users. A [RefusedError] cannot be resolved by trying again. No error contains a credential.
package git
