// Package digest names a call of a tool by what it would do: its tool and its
// arguments. A person decides on what was shown under a name, and the name is
// made again from what is about to run: if it is another, nobody decided.
package digest
