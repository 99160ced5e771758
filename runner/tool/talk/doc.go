// Package talk is the tools by which a model speaks to the loop instead of
// acting: think, finish and reject.
package talk
