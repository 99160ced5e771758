// Package state is the files of a session that belong to no workspace: scratch
// work, and results put aside.
//
// There are two forms of one thing, held to one suite and to the same bounds.
// New keeps them in memory. Open keeps them in a directory of the state
// directory, so that they are there after a restart: a backend of package disk,
// since a directory of files needs no other. They share that disk with the
// journal, so a bound on all of them together stands between a model that
// writes and a journal that cannot.
package state
