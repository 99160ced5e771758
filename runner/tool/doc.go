// Package tool is the port to what a model may do.
//
// A tool is a function and the page that describes it: files/read.go and
// files/read.md. What a tool answers, errors included, is for the model to
// read; an error returned from Call means that the runner itself cannot go on.
package tool
