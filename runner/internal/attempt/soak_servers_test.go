package attempt

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/test/soak"
)

// The servers around a runner of the soak.
const (
	modelServer  = "model server"
	apiServer    = "API server"
	effectServer = "effect server"
)

// A requestKill is at which request something is killed.
type requestKill struct {
	Server  string
	Request int // counted from 1, from when the kill was armed
	Moment  moment
	Refuse  int    // how many later requests the server refuses, if it is what is killed
	Spares  bool   // the request is answered all the same: what is killed lives on for a while
	fire    func() // kills it
}

// A gate is in front of the servers of one Run, and kills at the request that is armed.
type gate struct {
	mu      sync.Mutex
	armed   *requestKill
	seen    int
	refused map[string]int
}

func (g *gate) arm(k *requestKill) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed, g.seen = k, 0
}

// due is the kill whose request this is; isDown: the server refuses the request.
func (g *gate) due(server string) (kill *requestKill, isDown bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refused[server] > 0 {
		g.refused[server]--
		return nil, true
	}
	if g.armed == nil || g.armed.Server != server {
		return nil, false
	}
	if g.seen++; g.seen < g.armed.Request {
		return nil, false
	}
	kill, g.armed = g.armed, nil
	g.refused[server] = kill.Refuse
	return kill, false
}

// before puts the gate in front of a server.
func (g *gate) before(server string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kill, isDown := g.due(server)
		switch {
		case isDown:
			hangUp(w)
		case kill == nil:
			next.ServeHTTP(w, r)
		case kill.Spares:
			kill.fire()
			next.ServeHTTP(w, r)
		case kill.Moment == before:
			kill.fire()
			hangUp(w)
		case kill.Moment == during:
			next.ServeHTTP(&cutWriter{ResponseWriter: w, left: 300}, r)
			kill.fire()
			hangUp(w)
		case server == modelServer: // the runner has read the answer
			next.ServeHTTP(w, r)
			kill.fire()
		default: // it was done, and is not answered
			next.ServeHTTP(&cutWriter{ResponseWriter: w}, r)
			kill.fire()
			hangUp(w)
		}
	})
}

// hangUp resets the connection.
func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// A cutWriter sends the beginning of an answer.
type cutWriter struct {
	http.ResponseWriter
	left int
}

func (c *cutWriter) WriteHeader(status int) {
	if c.left > 0 {
		c.ResponseWriter.WriteHeader(status)
	}
}

func (c *cutWriter) Write(data []byte) (int, error) {
	part := data[:min(len(data), c.left)]
	c.left -= len(part)
	if len(part) > 0 {
		if _, err := c.ResponseWriter.Write(part); err != nil {
			return 0, err
		}
		_ = http.NewResponseController(c.ResponseWriter).Flush()
	}
	return len(data), nil
}

// effects are what happened outside, which no runner can undo.
type effects struct {
	mu     sync.Mutex
	counts map[string]int    // by id
	keys   map[string]string // the Run and call of each id
	wrong  []string
}

// ServeHTTP counts an effect.
func (e *effects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, key := r.URL.Query().Get("id"), r.Header.Get("X-Call")
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counts[id]++
	if was, known := e.keys[id]; known && was != key {
		e.wrong = append(e.wrong, fmt.Sprintf("%s is the effect of the calls %s and %s", id, was, key))
	}
	e.keys[id] = key
	fmt.Fprintf(w, "%s is done.\n", id)
}

// A soakAPI is an API server with one Run. It evaluates the tests of each patch, and the
// rules of the admission policy for reports of runners.
type soakAPI struct {
	violated func(i soak.Invariant, format string, args ...any)

	mu       sync.Mutex
	attempt  int
	podUID   string
	sequence int64
	last     task.Progress
	ended    bool // the operator has settled the Run
	commits  []task.Result
}

// begin records the pod of an attempt, as the operator does, unless the Run has a result.
func (a *soakAPI) begin(attempt int) (podUID string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.commits) > 0 {
		a.ended = true
		return ""
	}
	if attempt <= a.attempt {
		a.violated(soak.AttemptsOnce, "attempt %d follows attempt %d", attempt, a.attempt)
	}
	a.attempt, a.podUID, a.sequence = attempt, fmt.Sprintf("pod-%d", attempt), 0
	return a.podUID
}

// settle ends the Run if a result is committed: in its status, or by the termination message
// of its pod.
func (a *soakAPI) settle(t *task.Termination) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.commits) == 0 && t != nil && t.Result.Committed && t.Attempt == a.attempt {
		a.commits = append(a.commits, t.Result)
	}
	a.ended = len(a.commits) > 0
	return a.ended
}

// A patchOperation is an operation of a JSON Patch.
type patchOperation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
}

func (a *soakAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var ops []patchOperation
	body, err := io.ReadAll(r.Body)
	if err = errors.Join(err, json.Unmarshal(body, &ops)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if len(body) >= soak.MaxRun {
		a.violated(soak.Size, "a report has %d bytes", len(body))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	status, said := a.apply(ops)
	w.WriteHeader(status)
	fmt.Fprint(w, said)
}

// apply evaluates a patch.
func (a *soakAPI) apply(ops []patchOperation) (status int, said string) {
	for _, op := range ops[:len(ops)-1] {
		if !a.holds(op) {
			return http.StatusUnprocessableEntity, `{"details":{}}`
		}
	}
	last := ops[len(ops)-1]
	if last.Path != "/status/progress" {
		return http.StatusConflict, "the object has been modified"
	}
	var p task.Progress
	if err := json.Unmarshal(last.Value, &p); err != nil {
		return http.StatusBadRequest, err.Error()
	}
	switch {
	case a.ended:
		return http.StatusForbidden, "fenced: the Run is finished"
	case len(a.commits) > 0:
		return http.StatusForbidden, "fenced: the result of this attempt is committed"
	case p.Sequence <= a.sequence:
		return http.StatusForbidden, "fenced: a report must be newer than the last"
	}
	a.sequence, a.last = p.Sequence, p
	if p.Result != nil && p.Result.Committed {
		a.commits = append(a.commits, *p.Result)
	}
	return http.StatusOK, "{}"
}

// holds evaluates a test of a patch.
func (a *soakAPI) holds(op patchOperation) bool {
	value := string(op.Value)
	switch op.Path {
	case "/status/attempt/podUID":
		return value == fmt.Sprintf("%q", a.podUID)
	case "/status/attempt/number":
		return value == fmt.Sprint(a.attempt)
	case "/status/completionTime":
		return !a.ended
	}
	return false
}
