// Package output is what tools that run programs do with what those print: make
// it readable, cut its middle out, keep the whole in a file, show it as it
// comes, and save the end of it from a crash.
//
// A Record is all of that for one call. A program may print anything, as much as
// it likes: memory is bounded whatever comes.
package output
