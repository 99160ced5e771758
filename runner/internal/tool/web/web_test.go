package web

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/deckhand-dev/deckhand/runner/tool"
)

// here allows the servers of a test.
func here(a netip.Addr) bool { return a == netip.MustParseAddr("127.0.0.1") }

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func request(t *testing.T, o Options) tool.Tool {
	t.Helper()
	made, err := HTTPRequest(o)
	if err != nil {
		t.Fatalf("HTTPRequest: %v", err)
	}
	return made
}

func browse(t *testing.T, o Options) tool.Tool {
	t.Helper()
	made, err := Browse(o)
	if err != nil {
		t.Fatalf("Browse: %v", err)
	}
	return made
}

// call makes a call with arguments that are values.
func call(t *testing.T, to tool.Tool, args map[string]any) tool.Result {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	got, err := to.Call(t.Context(), tool.Call{ID: "s1c1", Name: to.Spec().Name, Args: raw, Emit: func(string) {}})
	if err != nil {
		t.Fatalf("Call(%s): %v", raw, err)
	}
	return got
}

func get(t *testing.T, o Options, url string) string {
	t.Helper()
	return call(t, request(t, o), map[string]any{"method": "GET", "url": url}).Render()
}

func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %q in:\n%.2000s", part, text)
		}
	}
}

func hasNot(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("there is %q in:\n%.2000s", part, text)
		}
	}
}

// A nameServer answers for names with one address after the other, the last one
// for good. It is asked without a network.
type nameServer struct {
	mu    sync.Mutex
	names map[string][]string
}

func (s *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		toolHeaders, theirs := net.Pipe()
		go s.serve(theirs)
		return toolHeaders, nil
	}}
}

// serve answers questions as they come over TCP: behind their length.
func (s *nameServer) serve(c net.Conn) {
	defer c.Close()
	buf := make([]byte, 2+1500)
	for {
		if n, err := c.Read(buf[:2]); err != nil || n < 2 {
			return
		}
		n, err := c.Read(buf[2 : 2+int(buf[0])<<8+int(buf[1])])
		if err != nil {
			return
		}
		out, err := s.answer(buf[2 : 2+n])
		if err != nil {
			return
		}
		if _, err := c.Write(append([]byte{byte(len(out) >> 8), byte(len(out))}, out...)); err != nil {
			return
		}
	}
}

func (s *nameServer) answer(question []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil {
		return nil, err
	}
	m.Response, m.Authoritative, m.RecursionAvailable, m.Additionals = true, true, true, nil
	name := m.Questions[0].Name.String()
	s.mu.Lock()
	defer s.mu.Unlock()
	addrs, ok := s.names[name]
	if !ok {
		m.RCode = dnsmessage.RCodeNameError
		return m.Pack()
	}
	if m.Questions[0].Type != dnsmessage.TypeA {
		return m.Pack()
	}
	if len(addrs) > 1 {
		s.names[name] = addrs[1:]
	}
	m.Answers = []dnsmessage.Resource{{
		Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET},
		Body:   &dnsmessage.AResource{A: netip.MustParseAddr(addrs[0]).As4()},
	}}
	return m.Pack()
}

func names(all map[string][]string) *net.Resolver { return (&nameServer{names: all}).resolver() }
