package workflowrun

import (
	"cmp"
	"slices"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/controller/run"
	"github.com/deckhand-dev/deckhand/internal/graph"
)

// What a child used that somebody deleted was used all the same. It is what the
// status told last, less what those tell of themselves that had ended by then: so
// as soon as one is gone, only those that have ended are told, and nothing counts
// twice. What others had used by the first time counts as lost too: it is never
// less than it was, and more by no more than that.

// A loss is what children used that began and are not there any more.
type loss struct {
	missing  map[string]int // how many of a node; nil: none
	progress v1alpha1.RunProgress
	unpriced bool // nobody knows what they cost
}

// lossOf is what was lost until now.
func lossOf(w world) loss {
	var l loss
	for _, at := range absentees(w) {
		if l.missing == nil {
			l.missing = map[string]int{}
		}
		l.missing[at.node]++
	}
	had := w.run.Status.Progress
	if l.missing == nil || had == nil {
		return l
	}
	var told v1alpha1.RunProgress
	sums(accounted(w), &told)
	other := numbers(&told)
	l.progress = v1alpha1.RunProgress{Counts: had.Counts, Usage: had.Usage}
	for i, n := range numbers(&l.progress) {
		*n = max(0, run.Charged(*n)-*other[i])
	}
	if had.Usage.CostMicroUSD == nil || told.Usage.CostMicroUSD == nil {
		l.unpriced, l.progress.Usage.CostMicroUSD = had.Usage.TotalTokens > 0, nil
		return l
	}
	cost := max(0, run.Charged(*had.Usage.CostMicroUSD)-*told.Usage.CostMicroUSD)
	l.progress.Usage.CostMicroUSD = &cost
	return l
}

// absentees are the places of children that are recorded and not there.
func absentees(w world) []place {
	exist := map[place]bool{}
	for _, c := range w.children {
		exist[placeOf(c)] = true
	}
	var out []place
	for _, n := range w.nodes() {
		first := 0
		if n.Loop != nil {
			first = 1
		}
		for i := range min(stands(w, n.Name).Started, graph.MaxItems) {
			if at := (place{n.Name, first + i}); !exist[at] {
				out = append(out, at)
			}
		}
	}
	return out
}

// accounted are the children that had ended when the status was written last, as
// far as it tells: of iterations the first ones, of others those that ended first.
func accounted(w world) []*v1alpha1.Run {
	ended := map[string][]*v1alpha1.Run{}
	for _, c := range w.children {
		if finished(c) {
			ended[placeOf(c).node] = append(ended[placeOf(c).node], c)
		}
	}
	var out []*v1alpha1.Run
	for _, n := range w.nodes() {
		all, s := ended[n.Name], stands(w, n.Name)
		known := s.Succeeded + s.Failed
		switch {
		case s.State.Ended():
		case n.Loop != nil:
			all = slices.DeleteFunc(all, func(c *v1alpha1.Run) bool { return placeOf(c).number > known })
		default:
			slices.SortStableFunc(all, func(a, b *v1alpha1.Run) int {
				return cmp.Or(a.Status.CompletionTime.Compare(b.Status.CompletionTime.Time), cmp.Compare(a.Name, b.Name))
			})
			all = all[:min(len(all), known)]
		}
		out = append(out, all...)
	}
	return out
}

// add adds what was lost to the sums of those that have ended.
func (l loss) add(out *v1alpha1.RunProgress) {
	to := numbers(out)
	for i, n := range numbers(&l.progress) {
		*to[i] = run.Charged(*to[i] + *n)
	}
	cost, lost := out.Usage.CostMicroUSD, l.progress.Usage.CostMicroUSD
	switch {
	case l.unpriced:
		out.Usage.CostMicroUSD = nil
	case cost != nil && lost != nil:
		both := run.Charged(*cost + *lost)
		out.Usage.CostMicroUSD = &both
	}
}

// pay takes what was lost from the purses. Finally pays what was set aside for its
// own at most, unless nobody else's is gone. So does everybody where nobody knows
// what something cost.
func (l loss) pay(w world, main, finally *purse) {
	var asides, rests amounts // of others, and of finally
	others := 0
	for _, n := range w.nodes() {
		want := lowest(ofTarget(w, string(n.Agent), string(n.Workflow)), limitsOf(n.Limits))
		p, to := main, &asides
		if w.final(n.Name) {
			p, to = finally, &rests
		} else {
			others += l.missing[n.Name]
		}
		for d := range dimensions {
			to[d] += int64(l.missing[n.Name]) * cmp.Or(want[d], max(p.limit[d], 0))
		}
	}
	gone := spentOf(&l.progress)
	if l.unpriced {
		gone[byCost] = asides[byCost] + rests[byCost]
	}
	for d := range dimensions {
		part := gone[d]
		if others > 0 {
			part = min(part, rests[d])
		}
		finally.used[d] += part
		main.used[d] += gone[d] - part
	}
}
