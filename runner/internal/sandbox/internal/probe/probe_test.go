//go:build linux

package probe

import (
	"net"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
)

// Where nobody listens somebody still says so: the connection was let through, and
// whatever listens tomorrow can be reached.
func TestAPortThatNobodyListensOnIsReached(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	got := dial(&all, []string{at})
	all.Wait()
	if diff := cmp.Diff([]Outcome{Succeeded}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestJudge(t *testing.T) {
	holds := func(change func(f *Findings)) Findings {
		f := Findings{
			Addresses: []Outcome{Refused, Refused}, Datagrams: []Outcome{Refused},
			Files: []Outcome{Refused}, Secrets: []Outcome{Refused}, Resources: []Outcome{Refused}, Restricted: true,
		}
		change(&f)
		return f
	}
	const yes, ports, no = sandbox.Enforced, sandbox.PortsOnly, sandbox.Unenforced
	for name, tc := range map[string]struct {
		found                   Findings
		process, files, network string
	}{
		"everything holds":                       {holds(func(*Findings) {}), yes, yes, ports},
		"a low port answers":                     {holds(func(f *Findings) { f.Addresses[1] = Succeeded }), yes, yes, no},
		"a low port does not answer":             {holds(func(f *Findings) { f.Addresses[1] = Failed }), yes, yes, no},
		"no low port was tried":                  {holds(func(f *Findings) { f.Addresses = nil }), yes, yes, no},
		"a datagram is sent":                     {holds(func(f *Findings) { f.Datagrams = []Outcome{Refused, Succeeded} }), yes, yes, no},
		"a file is made":                         {holds(func(f *Findings) { f.Files[0] = Succeeded }), yes, no, ports},
		"a file cannot be made, but for no room": {holds(func(f *Findings) { f.Files[0] = Failed }), yes, no, ports},
		"the environment is read":                {holds(func(f *Findings) { f.Secrets[0] = Succeeded }), no, yes, ports},
		"the server's limits are changed":        {holds(func(f *Findings) { f.Resources[0] = Succeeded }), no, yes, ports},
		"there are no filters":                   {holds(func(f *Findings) { f.Restricted = false }), no, yes, ports},
		"nothing was tried":                      {Findings{}, no, no, no},
	} {
		t.Run(name, func(t *testing.T) {
			want := sandbox.Confinement{Process: tc.process, Files: tc.files, Network: tc.network, LandlockABI: 4}
			if diff := cmp.Diff(want, Judge(tc.found, 4)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
