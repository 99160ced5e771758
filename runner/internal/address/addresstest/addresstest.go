// Package addresstest resolves names for tests, without a network.
package addresstest

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// Resolver returns a resolver without a network. Each name, which ends with a dot, has one address
// after the other, the last one for good.
func Resolver(names map[string][]string) *net.Resolver {
	s := &nameServer{names: names}
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go s.serve(theirs)
		return ours, nil
	}}
}

// A nameServer answers for names.
type nameServer struct {
	mu    sync.Mutex
	names map[string][]string
}

// serve answers DNS queries over TCP, each of which follows its length.
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
