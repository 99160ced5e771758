//go:build race

package expr_test

// underRace reports whether the race detector is enabled. It lets sync.Pool drop values,
// so that matching a regular expression allocates each time.
const underRace = true
