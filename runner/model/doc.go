// Package model is the interface to language models. A Model has one method, Stream; Collect, the only assembler of
// streams, collects whole answers from it. Because the interface is so small, retrying, pricing and routing are plain
// decorators. Adapters are packages below this one and must pass the suite in modeltest. They read liberally and write
// strictly, and never return an incomplete answer as a whole one: a stream that ends without a finish reason is an
// *IncompleteError.
package model
