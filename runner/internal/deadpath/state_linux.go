package deadpath

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// stateOf returns the state of a connection, unless it is closed.
func stateOf(c *net.TCPConn) (state, bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return state{}, false
	}
	var info *unix.TCPInfo
	var failed error
	err = raw.Control(func(fd uintptr) {
		info, failed = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	if err != nil || failed != nil {
		return state{}, false
	}
	silent := time.Duration(min(info.Last_ack_recv, info.Last_data_recv)) * time.Millisecond
	return state{silent: silent, retransmits: int(info.Retransmits), probes: int(info.Probes)}, true
}
