// Package store is a driver over a small key-value interface, for files that outlive a Run, such as an agent's
// memories.
//
// A database needs four methods (KV) to hold them; Memory holds them in the process. The keys are the paths of the
// files. A directory exists while a file is below it.
//
// What to know:
//   - Two writers of one file are distinguished by the revision of the KV: the second finds that the file has
//     changed since it was read.
//   - The Store lists a directory by listing all keys below it, so a search of a tree
//     lists as often as it has directories.
//   - A name is valid UTF-8 without control characters, because it is a key and
//     a line of a list.
//   - Two processes that at the same time make the file "a" and the file "a/b"
//     both succeed. Each is found by its name; a list shows the file.
package store
