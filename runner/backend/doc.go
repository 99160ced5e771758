// Package backend is the files that a model sees.
//
// A [Driver] stores a tree of files. A [Backend] over it does what the file tools need: it checks paths, pages, writes
// by version, edits, searches, and bounds all of it. Paths are slash-separated and absolute in the model's view
// ("/workspace/a.go"); a Backend is given paths below the root of its driver. Errors are typed; the file
// tools turn them into texts in one place.
//
// Packages store and state have drivers, and backendtest the suite that all drivers must pass.
package backend
