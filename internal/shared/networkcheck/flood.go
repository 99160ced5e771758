package networkcheck

import (
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// maxOfSource is how many connections of one address are served in parallel, so that a pod with many idle connections
// does not block other pods.
const maxOfSource = 32

// sources counts the connections that are served, by the address of the client.
type sources struct {
	mu     sync.Mutex
	counts map[string]int
}

// enter reports whether another connection of an address may be served. If so, leave ends it.
func (s *sources) enter(source string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts[source] >= maxOfSource {
		return false
	}
	if s.counts == nil {
		s.counts = map[string]int{}
	}
	s.counts[source]++
	return true
}

func (s *sources) leave(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts[source]--; s.counts[source] == 0 {
		delete(s.counts, source)
	}
}

func sourceOf(conn net.Conn) string {
	host, _, _ := net.SplitHostPort(conn.RemoteAddr().String()) // "" is a source too
	return host
}

// lostConnections returns how many connections to listeners of this network namespace the kernel has dropped so far; 0
// if the kernel does not report it.
func lostConnections() uint64 {
	data, _ := os.ReadFile("/proc/net/netstat") // as above
	return parseLost(string(data))
}

// parseLost sums the kernel's counters of connections that a listener could not accept. The file has pairs of lines:
// names and then values.
func parseLost(text string) (sum uint64) {
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "TcpExt:" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for _, name := range []string{"ListenOverflows", "ListenDrops", "TCPReqQFullDrop"} {
			if i := slices.Index(names, name); i > 0 && i < len(fields) {
				n, _ := strconv.ParseUint(fields[i], 10, 64) // the kernel writes numbers
				sum += n
			}
		}
	}
	return sum
}
