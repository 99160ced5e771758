// Package recall is the tool that finds what an agent remembers: in the files
// that it keeps, and in what was said in earlier sessions.
//
// It looks for words as they stand, in any case, and wants all of them in one
// file or one session. What has them most often comes first, and of equals what
// is newer. How much it looks at, and how much it shows, is bounded.
package recall
