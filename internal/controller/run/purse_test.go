package run

import (
	"math"
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// Nobody gains by saying that less than nothing was used, and no sum overflows by
// what somebody says.
func TestUsageThatNobodyHas(t *testing.T) {
	for said, want := range map[int64]int64{-5: 0, math.MinInt64: 0, 7: 7, math.MaxInt64: 1 << 50} {
		p := &v1alpha1.RunProgress{Usage: v1alpha1.Usage{TotalTokens: said, CostMicroUSD: &said}}
		if got := usedBy(p); got != (purse{want, want}) {
			t.Errorf("one that says it used %d used %+v, want %d", said, got, want)
		}
	}
}
