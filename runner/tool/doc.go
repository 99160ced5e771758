// Package tool is the port to what a model may do.
//
// A tool is a function and the page that describes it: files/read.go and
// files/read.md. What a tool answers, errors included, is for the model to
// read. An error that Call returns is read by the model, too; one made by Fatal also
// ends the attempt.
package tool
