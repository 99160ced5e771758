package graph

// A Watcher is an Evaluator that reads how nodes stand while it is asked: in one look
// a node may end and another, which reads that, begin. Next calls it once, before
// it asks anything; what it is given holds after Next too.
type Watcher interface {
	Watch(stands func(node string) Status)
}

// connectWatcher lets an Evaluator that wants to look on.
func (w *pass) connectWatcher() {
	watcher, wants := w.evaluator.(Watcher)
	if !wants {
		return
	}
	at := map[string]*node{}
	for _, p := range w.nodes {
		at[p.Name] = p
	}
	watcher.Watch(func(node string) Status {
		if p := at[node]; p != nil {
			return p.Status
		}
		return Status{State: Waiting}
	})
}
