// Package files is the tools that work on files: Read, Write, Edit, Ls, Glob and Grep, over one backend, which the
// model sees under a root such as "/workspace", or as several mounted directories.
//
// The backend's errors are typed; only words.go turns them into text for the model. The page beside a tool describes it
// to the model (read.md for read.go).
//
// A session changes only files that it has read: Edit requires a Read of the file, and so does a Write to an existing
// file, unless it would change nothing. Both are refused if the content has changed since. Writing and editing count as
// reading. A removed file can be written again without reading it.
//
// Write and Edit preserve what Read does not show: a byte order mark, CRLF line ends and bytes that are not UTF-8.
// Write cannot keep such bytes, so it refuses.
package files
