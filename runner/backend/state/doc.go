// Package state has the files of a session outside of the workspace: scratch files, and large tool results.
//
// There are two drivers, which pass the same suite and have the same bounds. New keeps them in memory. Open keeps them
// in a directory of the state directory, with a backend of package disk, so that they exist after a restart. They share
// that disk with the journal, so their total size is bounded: a model must not be able to fill it.
package state
