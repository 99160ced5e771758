package graph

// Watcher is an Evaluator that reads the states of nodes while it is called: in one pass a
// node may end and another, which reads that, start. Next calls Watch once, before it
// evaluates anything; the function is valid after Next too.
type Watcher interface {
	Watch(stands func(node string) Status)
}

// connectWatcher calls Watch of an Evaluator that has it.
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
