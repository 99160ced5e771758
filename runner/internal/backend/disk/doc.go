// Package disk is a backend over a directory.
//
// Everything goes through one os.Root, never through the path functions of package os, so that nothing outside the
// directory is opened, by any path, link or rename, even if a command changes links in the same directory while a call
// runs.
//
// What to know:
//   - A link is followed where it leads inside the root by relative steps. An
//     absolute link is ErrEscapes, even if it would lead back inside.
//   - Writing through a link writes the file that it names.
//   - Only regular files are read. A pipe, socket or device is ErrNotFile; it is
//     never waited for.
//   - A write replaces the file: other hard links to it keep the old content.
//     Reading through a hard link cannot be distinguished from reading the file. A process that can make a hard link to a
//     file outside has access to that file already.
//   - Files that were being written when the process died are under TempDir and
//     are removed by the next Open.
package disk
