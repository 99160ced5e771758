package approval

import (
	"slices"
	"time"

	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// longModelWait is how long a session waits for a model before the runner may leave. If the next try is at least as
	// far away, the runner may leave at once.
	longModelWait = 10 * time.Minute
	// nearModelTry is how close the next try must be for the runner to stay.
	nearModelTry = time.Minute
	// longTry is longer than the requests of one try take if the server does not answer.
	longTry = 3 * time.Minute
)

// A ModelWait is the wait of one session for a model that is unavailable. It begins with
// the first failure and ends with an answer: the tries in between are part of it.
type ModelWait struct {
	requests *Requests

	// The lock of Requests guards the fields below.
	back    func()   // ends the wait in Activity; nil: the session does not wait
	try     ModelTry // the last try that was set
	request *bool    // the current try; nil: there is none
}

// A ModelTry is when a session asks a model again, and why.
type ModelTry struct {
	// Model is the Model that was asked last, Message its error.
	Model, Message string
	// Since is when the first request failed, Next when the model is asked again.
	Since, Next time.Time
	// Promised reports that the provider named the time of Next.
	Promised bool
}

// Show returns the try as the status shows it.
func (t ModelTry) Show() *task.ModelWait {
	w := &task.ModelWait{
		Model: t.Model, Since: t.Since.UTC().Format(time.RFC3339), Promised: t.Promised,
		Message: task.Cut(t.Message, task.MaxWarning),
	}
	if !t.Next.IsZero() {
		w.NextTryAt = t.Next.UTC().Format(time.RFC3339)
	}
	return w
}

// BeginModelWait begins the wait of one session.
func (r *Requests) BeginModelWait(t ModelTry) *ModelWait {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &ModelWait{requests: r, back: r.activity.wait(ForModel), try: t}
	r.models = append(r.models, w)
	return w
}

// Set sets when the model is asked again. The session waits until then.
func (w *ModelWait) Set(t ModelTry) {
	w.requests.mu.Lock()
	defer w.requests.mu.Unlock()
	if w.back == nil { // an answer had begun, and was cut
		w.back = w.requests.activity.wait(ForModel)
	}
	w.try, w.request = t, nil
}

// Ask marks that the model is being asked. If it takes longer than longTry, the model is not unavailable, and from then
// on the session counts as working.
func (w *ModelWait) Ask() {
	w.requests.mu.Lock()
	defer w.requests.mu.Unlock()
	request := new(bool)
	w.request = request
	time.AfterFunc(longTry, func() {
		w.requests.mu.Lock()
		defer w.requests.mu.Unlock()
		if w.request == request {
			w.work()
		}
	})
}

// Answering marks that the answer has begun: from now on the session counts as working.
func (w *ModelWait) Answering() {
	w.requests.mu.Lock()
	defer w.requests.mu.Unlock()
	w.work()
}

func (w *ModelWait) work() {
	if w.back != nil {
		w.back()
		w.back = nil
	}
}

// End ends the wait.
func (w *ModelWait) End() {
	w.requests.mu.Lock()
	defer w.requests.mu.Unlock()
	w.work()
	w.request = nil
	w.requests.models = slices.DeleteFunc(w.requests.models, func(other *ModelWait) bool { return other == w })
}

// ModelWait returns the wait for a model that the status shows, or nil. Of several waits it combines the earliest
// beginning with the next try. A model whose answer has begun is not waited for.
func (r *Requests) ModelWait() *task.ModelWait {
	if d := r.suspended.Load(); d != nil && d.end == errWaiting {
		return d.modelWait
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.modelWait()
}

func (r *Requests) modelWait() *task.ModelWait {
	waiting := slices.DeleteFunc(slices.Clone(r.models), func(w *ModelWait) bool { return w.back == nil })
	if len(waiting) == 0 {
		return nil
	}
	shown := slices.MinFunc(waiting, func(a, b *ModelWait) int { return a.try.Since.Compare(b.try.Since) }).try
	first := slices.MinFunc(waiting, func(a, b *ModelWait) int { return a.try.Next.Compare(b.try.Next) }).try
	shown.Next, shown.Promised = first.Next, first.Promised
	return shown.Show()
}

// untilLong returns how long it takes until the runner may leave each wait for a model.
func (r *Requests) untilLong() time.Duration {
	now, longest := r.config.Now(), time.Duration(0)
	for _, w := range r.models {
		waited, left := now.Sub(w.try.Since), w.try.Next.Sub(now)
		switch {
		case w.request != nil:
			longest = max(longest, SuspendRetry)
		case left > longModelWait:
		case waited < longModelWait:
			longest = max(longest, longModelWait-waited)
		case left < nearModelTry:
			longest = max(longest, left, SettleDelay)
		}
	}
	return longest
}
