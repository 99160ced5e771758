// Package tool is the interface to the tools of a model.
//
// A tool is a function and the page that describes it: files/read.go and files/read.md. The model reads the results of
// a tool, errors included. It also reads an error that Call returns; an error of Fatal ends the attempt, too.
package tool
