// Package control is the tools by which a model speaks instead of acting: to itself
// with think, to the loop with finish and reject, to people with ask.
package control
