// Package journal stores the records of one Run: messages, the intents of calls and their
// results, in order.
//
// A journal is a directory with one file of JSON lines per attempt
// (journal-0001.jsonl), so that an attempt that was replaced can never write
// between the lines of the one that replaced it. Each line is one record with
// its checksum; records are numbered through, from the first attempt to the
// last. The header that opens a file says after which record of the file
// before it took over: what an old attempt wrote later than that is ignored.
//
//	{"crc":"5f0c8a1d","record":{"seq":1,"kind":"header",…}}
//
// A line that a crash cut short is the end of what its attempt did and is
// dropped; a wrong checksum anywhere else is damage and is reported.
//
// The loop is written against Log; Dir is the one on disk and Memory the one
// for tests. What the records amount to is for the package state to say.
package journal
