package approval

import (
	"slices"
	"time"

	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// longModelWait is how long a session waits for a model before that wait needs no runner,
	// and how far away the next try must be for it to need none from the beginning.
	longModelWait = 10 * time.Minute
	// nearModelTry is before the next try that a runner stays for.
	nearModelTry = time.Minute
	// longTry is longer than the requests of one try take if the server is away.
	longTry = 3 * time.Minute
)

// A ModelWait is the wait of one session for a model that is unavailable. It begins with
// the first failure and ends with an answer: the tries in between are part of it.
type ModelWait struct {
	requests *Requests

	// The lock of the requests guards these.
	back    func()   // the session works again; nil: it does
	try     ModelTry // the last that was set
	request *bool    // the try that is under way; nil: none is
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

// Set says when the model is asked again. The session waits until then.
func (w *ModelWait) Set(t ModelTry) {
	w.requests.mu.Lock()
	defer w.requests.mu.Unlock()
	if w.back == nil { // an answer had begun, and was cut
		w.back = w.requests.activity.wait(ForModel)
	}
	w.try, w.request = t, nil
}

// Ask says that the model is asked. A model that answers nothing for longTry is not away:
// from then on the session works.
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

// Answering says that the answer has begun: the session works.
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

// ModelWait returns the wait for a model as the status shows it: since the first of the
// sessions waits for one, and the try that is made first. It returns nil if none waits: a model
// whose answer has begun is not waited for.
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

// untilLong returns how long it takes until each wait for a model needs no runner.
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
