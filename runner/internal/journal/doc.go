// Package journal stores the records of one Run: messages, the intents of calls and their results, in order.
//
// A journal is a directory with one file of JSON lines per attempt (journal-0001.jsonl), so that a replaced attempt can
// never write between the lines of its successor. Each line is one record with its checksum; records are numbered
// across all attempts. The header of a file names the last record of the previous file that counts: later records of an
// old attempt are ignored.
//
//	{"crc":"5f0c8a1d","record":{"seq":1,"kind":"header",…}}
//
// An incomplete last line comes from a crash and is dropped; a wrong checksum anywhere else is damage and is reported.
//
// The loop is written against Log; Dir is a Log on disk, Memory a Log for tests. Package state computes the state of a
// Run from the records.
package journal
