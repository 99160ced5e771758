package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxAnswering is how many requests of a server are answered at the same time. Further ones get no answer.
const maxAnswering = 8

// A guard filters the messages between a connection and its session. It passes on only responses and handles all other
// messages itself, one at a time, because the session would put them on an unbounded queue.
type guard struct {
	mcp.Connection
	// progress is called when the call with a token makes progress.
	progress func(token, text string)
	// changed is called when the server's list of tools changes.
	changed func()
	// root is the file root that a server may ask for; empty: none.
	root string

	answering chan struct{}
	ended     chan struct{} // closed when there is nothing more to read
	once      sync.Once

	mu              sync.Mutex
	protocolVersion string                // the version of the protocol, once it is known
	asked           map[jsonrpc.ID]string // the methods of the requests that are not answered yet
	tasks           []string              // names of tools that must be called as tasks
}

func newGuard(c mcp.Connection) *guard {
	return &guard{Connection: c, answering: make(chan struct{}, maxAnswering), ended: make(chan struct{})}
}

// Read implements [mcp.Connection].
func (g *guard) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		msg, err := g.Connection.Read(ctx)
		if err != nil {
			g.end()
			return nil, err
		}
		switch m := msg.(type) {
		case *jsonrpc.Response:
			g.inspectResponse(m)
			return m, nil
		case *jsonrpc.Request:
			g.handleRequest(ctx, m)
		}
	}
}

// handleRequest handles a message that is no response.
func (g *guard) handleRequest(ctx context.Context, m *jsonrpc.Request) {
	if m.IsCall() {
		g.answerRequest(ctx, m)
	} else {
		g.handleNotification(m)
	}
}

// Write implements [mcp.Connection].
func (g *guard) Write(ctx context.Context, msg jsonrpc.Message) error {
	if m, ok := msg.(*jsonrpc.Request); ok {
		g.noteRequest(m)
	}
	return g.Connection.Write(ctx, msg)
}

// noteRequest records the method of a request, for its response.
func (g *guard) noteRequest(m *jsonrpc.Request) {
	if !m.IsCall() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.asked == nil {
		g.asked = map[jsonrpc.ID]string{}
	}
	g.asked[m.ID] = m.Method
}

// method returns the method that a response answers, and forgets the request. Some servers write the ID as a string;
// the response then gets its number back.
func (g *guard) method(m *jsonrpc.Response) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.asked[m.ID]; !known {
		if number, ok := asNumber(m.ID); ok && g.asked[number] != "" {
			m.ID = number
		}
	}
	method := g.asked[m.ID]
	delete(g.asked, m.ID)
	return method
}

// asNumber returns the number of an ID that a server wrote as a string.
func asNumber(id jsonrpc.ID) (jsonrpc.ID, bool) {
	text, ok := id.Raw().(string)
	if !ok {
		return jsonrpc.ID{}, false
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return jsonrpc.ID{}, false
	}
	number, err := jsonrpc.MakeID(float64(n))
	return number, err == nil
}

// Close implements [mcp.Connection].
func (g *guard) Close() error {
	g.end()
	return g.Connection.Close()
}

func (g *guard) end() { g.once.Do(func() { close(g.ended) }) }

// over reports whether the connection has ended.
func (g *guard) over() bool {
	select {
	case <-g.ended:
		return true
	default:
		return false
	}
}

// version returns the version of the protocol, once it is known.
func (g *guard) version() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.protocolVersion
}

// inspectResponse reads the version of the protocol and the tools that must be called as tasks, and renders results for
// the model.
func (g *guard) inspectResponse(m *jsonrpc.Response) {
	switch method := g.method(m); {
	case m.Error != nil:
	case method == "initialize":
		g.noteVersion(m.Result)
		m.Result = withReadableInstructions(m.Result)
	case method == "server/discover":
		m.Result = withReadableInstructions(m.Result)
	case method == "tools/list":
		names := taskOnly(m.Result)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.tasks = append(g.tasks, names...)
	case method == methodCall, method == methodPrompt, method == methodResource:
		m.Result = rendered(method, m.Result)
	}
}

// noteVersion reads the version of the protocol.
func (g *guard) noteVersion(result json.RawMessage) {
	var begun struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if json.Unmarshal(result, &begun) == nil && len(begun.ProtocolVersion) <= len("2006-01-02") {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.protocolVersion = begun.ProtocolVersion
	}
}

// taskOnly returns the names of the tools in a list that must be called as tasks. The library does not read this
// property:
// https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks
func taskOnly(list json.RawMessage) []string {
	var page struct {
		Tools []struct {
			Name      string          `json:"name"`
			Execution json.RawMessage `json:"execution"`
		} `json:"tools"`
	}
	_ = json.Unmarshal(list, &page) // what is no list has no tools
	var names []string
	for _, t := range page.Tools[:min(len(page.Tools), maxOffered)] {
		var execution struct {
			TaskSupport string `json:"taskSupport"`
		}
		if json.Unmarshal(t.Execution, &execution) == nil && execution.TaskSupport == "required" {
			names = append(names, t.Name)
		}
	}
	return names
}

// taskOnly returns the names of the listed tools that must be called as tasks.
func (g *guard) taskOnly() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.tasks)
}

// handleNotification handles a notification.
func (g *guard) handleNotification(m *jsonrpc.Request) {
	switch {
	case m.Method == "notifications/progress":
		if len(m.Params) > maxSchema {
			return
		}
		var told struct {
			Token    string  `json:"progressToken"`
			Message  string  `json:"message"`
			Progress float64 `json:"progress"`
			Total    float64 `json:"total"`
		}
		if json.Unmarshal(m.Params, &told) == nil {
			g.progress(told.Token, progressLine(told.Message, told.Progress, told.Total))
		}
	case strings.HasSuffix(m.Method, "/list_changed"):
		g.changed()
	}
}

// answerRequest answers a request of the server, in its own goroutine, because the server may not read the answer.
func (g *guard) answerRequest(ctx context.Context, m *jsonrpc.Request) {
	select {
	case g.answering <- struct{}{}:
	default:
		return
	}
	go func() {
		defer func() { <-g.answering }()
		response := &jsonrpc.Response{ID: m.ID}
		response.Result, response.Error = g.reply(m.Method)
		_ = g.Connection.Write(ctx, response) // a server that does not read answers gets none
	}()
}

// reply answers a request of a server: it lists roots, and refuses to sample the model or to ask a user.
func (g *guard) reply(method string) (json.RawMessage, error) {
	switch method {
	case "ping":
		return json.RawMessage(`{}`), nil
	case "roots/list":
		if g.root == "" {
			return json.RawMessage(`{"roots":[]}`), nil
		}
		return json.RawMessage(`{"roots":[{"uri":"file://` + g.root + `","name":"workspace"}]}`), nil
	case "elicitation/create":
		return json.RawMessage(`{"action":"decline"}`), nil
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this client does not do that"}
}
