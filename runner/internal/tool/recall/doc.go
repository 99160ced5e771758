// Package recall is the tool that searches the memory of an agent: the files that it keeps, and the texts of earlier
// sessions. It finds files and sessions that contain all words, in any case of letters. Those with more occurrences
// come first, and among equals the newer. How much is searched and shown is bounded.
package recall
