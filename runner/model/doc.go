// Package model is the port to language models.
//
// A Model has one method, Stream; whole answers are collected from it by
// Collect, the only assembler of streams in the tree. Because the port is that
// narrow, retrying, pricing and routing are plain decorators of it.
//
// Adapters live beside this package (openai) and are held to the suite in
// modeltest. They read liberally and write strictly, and they never return a
// cut answer as a whole one: a stream that ends without saying why is an
// *IncompleteError.
package model
