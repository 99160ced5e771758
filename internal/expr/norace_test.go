//go:build !race

package expr_test

// underRace says that the race detector is at work.
const underRace = false
