package graph

// A Watcher is an Evaluator that reads how nodes stand while it is asked: in one look
// a node may end and another, which reads that, begin. Next calls it once, before
// it asks anything; what it is given holds after Next too.
type Watcher interface {
	Watch(stands func(node string) Status)
}

// watched lets an Evaluator that wants to look on.
func (w *walk) watched() {
	watcher, wants := w.evaluator.(Watcher)
	if !wants {
		return
	}
	at := map[string]*piece{}
	for _, p := range w.pieces {
		at[p.Name] = p
	}
	watcher.Watch(func(node string) Status {
		if p := at[node]; p != nil {
			return p.Status
		}
		return Status{State: Waiting}
	})
}
