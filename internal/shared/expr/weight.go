package expr

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// weights is the cost of reading values as a tree, with parts that they share counted
// each time: 1 for each value and for ten bytes of text. Counting stops at MaxCost.
func weights(all []ref.Val) uint64 {
	w := weigher{left: MaxCost}
	for _, v := range all {
		w.add(v)
	}
	return uint64(MaxCost - w.left) //nolint:gosec // left is at most MaxCost
}

// A weigher counts down from MaxCost.
type weigher struct{ left int64 }

func (w *weigher) add(v ref.Val) {
	w.left--
	if w.left < 0 {
		return
	}
	switch v := v.(type) {
	case types.String:
		w.left -= int64(len(v) / 10)
	case *types.Optional:
		if v.HasValue() {
			w.add(v.GetValue())
		}
	case traits.Lister:
		for i, n := types.Int(0), v.Size(); i.Compare(n) == types.IntNegOne && w.left >= 0; i++ {
			w.add(v.Get(i))
		}
	case traits.Mapper:
		for it := v.Iterator(); it.HasNext() == types.True && w.left >= 0; {
			key := it.Next()
			w.add(key)
			w.add(v.Get(key))
		}
	}
}
