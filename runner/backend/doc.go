// Package backend is the port to the files that a model sees.
//
// Paths are slash-separated and absolute in the model's view ("/workspace/a.go");
// a backend is given paths below its own root. Errors are typed; the file tools
// turn them into words in one place. Adapters live beside this package (disk,
// state, store, and composite, which makes one of several) and are held to the
// suite in backendtest; what each of them does with the content of a file, they
// do with package text.
package backend
