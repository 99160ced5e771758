package gen

import "testing"

// Seeds returns how many histories a property test plays: n, or with -short, as under the race
// detector, a tenth of them.
func Seeds(n uint64) uint64 {
	if testing.Short() {
		return (n + 9) / 10
	}
	return n
}
