//go:build !race

package expr_test

// underRace reports whether the race detector is enabled.
const underRace = false
