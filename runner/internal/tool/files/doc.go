// Package files is the tools that work on files: Read, Write, Edit, Ls, Glob
// and Grep, over one backend that the model sees under a root such as
// "/workspace", or whose several places it sees as they are mounted.
//
// The backend's errors are typed; words.go, alone, turns them into what the
// model reads. The page beside a tool describes it to the model
// (read.md for read.go).
//
// A session changes only what it has seen: Edit needs a Read of the file before
// it, and so does a Write over a file that is there, unless it would change
// nothing. Both are refused when the content is no longer what was read. Writing
// and editing count as reading: the session knows what it wrote. A file that was
// removed is forgotten, so that it can be written again.
//
// Write and Edit keep what Read does not show: a byte order mark, CRLF line ends
// and bytes that are not UTF-8. Write cannot keep such bytes, so it refuses.
package files
