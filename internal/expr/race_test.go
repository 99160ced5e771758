//go:build race

package expr_test

// underRace says that the race detector is at work. It makes sync.Pool drop what it is
// given, so that matching a regular expression allocates anew each time.
const underRace = true
