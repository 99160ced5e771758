package approval

import "github.com/deckhand-dev/deckhand/runner/task"

// maxChildren is how many of the requests that are shown may be for child Runs:
// people are asked beside them.
const maxChildren = task.MaxPending - 2

// A display is the space that a report has for requests.
type display struct{ shown, size, children, childSize int }

// display are the requests that a report has space for, oldest first. What was
// shown stays until it is over: a user may be deciding, or a child Run is under way.
// Of the others people's come first, then those for child Runs, each in the order
// in which they were asked.
func (o *openRequests) display() []task.Pending {
	var d display
	for _, q := range o.all {
		if q.shown {
			d.put(q)
		}
	}
	d.fill(o.all, func(q *Request) bool { return q.Kind != task.PendingDelegation })
	d.fill(o.all, func(q *Request) bool { return q.Kind == task.PendingDelegation })
	var all []task.Pending
	for _, q := range o.all {
		if q.shown {
			all = append(all, q.Pending)
		}
	}
	return all
}

// fill shows what is not shown yet, one after the other, until the next does not
// fit: a small one does not overtake a large one.
func (d *display) fill(open []*Request, of func(*Request) bool) {
	for _, q := range open {
		if q.shown || !of(q) {
			continue
		}
		if !d.fits(q) {
			return
		}
		q.shown = true
		d.put(q)
	}
}

func (d *display) put(q *Request) {
	d.shown++
	d.size += q.Size()
	if q.Kind == task.PendingDelegation {
		d.children++
		d.childSize += q.Size()
	}
}

// fits says whether there is space for one more. The first always fits; those for
// child Runs have a share of it.
func (d *display) fits(q *Request) bool {
	if q.Kind == task.PendingDelegation && d.children > 0 && (d.children == maxChildren || d.childSize+q.Size() > task.MaxDelegated) {
		return false
	}
	return d.shown == 0 || d.shown < task.MaxPending && d.size+q.Size() <= task.MaxAsked
}
