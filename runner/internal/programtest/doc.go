// Package programtest tests and measures the program runner-local as a user starts it:
// built, with files, flags and a model over HTTP.
package programtest
