//go:build linux

package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// dialTimeout is what each connection is tried for; all are tried at once.
const dialTimeout = time.Second

// Targets are what is tried.
type Targets struct {
	Low  []string // addresses below port 1024: metadata services, the API server, the Internet
	High []string // addresses above, outside of the pod
	// RetrySeconds is for how many seconds addresses above are tried again while they
	// answer: policies of the network may come a little after the pod.
	RetrySeconds int
	Server       int    // the process id of the sandbox's server
	Dir          string // a directory that must not be changed
	ProbeFile    string // a file in it, to be removed
}

// An Outcome is what came of a try.
type Outcome string

// The outcomes.
const (
	Refused   Outcome = "Refused" // by the kernel, for want of permission
	Failed    Outcome = "Failed"  // otherwise, as when nobody answered
	Succeeded Outcome = "Succeeded"
)

// Findings are the outcomes.
type Findings struct {
	Low        []Outcome
	High       []Outcome
	Datagrams  []Outcome // sockets other than of TCP
	Files      []Outcome // changes beneath Targets.Dir
	Secrets    []Outcome // reading the server's environment and memory
	Resources  []Outcome // changing the server's limits and priority
	Restricted bool      // no_new_privs and seccomp are in force
}

// Run tries everything.
func Run(t Targets) Findings {
	var f Findings
	var all sync.WaitGroup
	f.Low, f.High = dial(&all, t.Low, 0), dial(&all, t.High, t.RetrySeconds)
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		for _, kind := range []int{unix.SOCK_DGRAM, unix.SOCK_RAW} {
			f.Datagrams = append(f.Datagrams, socket(family, kind))
		}
	}
	f.Files = []Outcome{
		create(filepath.Join(t.Dir, "probe")),
		outcome(os.Rename(t.ProbeFile, t.ProbeFile+".moved")),
		outcome(os.Remove(t.ProbeFile)),
	}
	for _, name := range []string{"environ", "mem"} {
		f.Secrets = append(f.Secrets, open(fmt.Sprintf("/proc/%d/%s", t.Server, name)))
	}
	f.Resources = resources(t.Server)
	f.Restricted = isRestricted()
	all.Wait()
	return f
}

// outcome is what an error says of a try.
func outcome(err error) Outcome {
	switch {
	case err == nil:
		return Succeeded
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return Refused
	}
	return Failed
}

// dial tries addresses, all at once; the outcomes are there when all is.
func dial(all *sync.WaitGroup, addresses []string, retries int) []Outcome {
	outcomes := make([]Outcome, len(addresses))
	for i, a := range addresses {
		all.Go(func() {
			outcomes[i] = connect(a)
			for tries := 0; outcomes[i] == Succeeded && tries < retries; tries++ {
				<-time.After(time.Second)
				outcomes[i] = connect(a)
			}
		})
	}
	return outcomes
}

func connect(address string) Outcome {
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(context.Background(), "tcp", address)
	if err == nil {
		_ = conn.Close() // nothing was said
	}
	if errors.Is(err, unix.ECONNREFUSED) {
		err = nil // nobody listens there; nothing was in the way either
	}
	return outcome(err)
}

func socket(family, kind int) Outcome {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd) // nothing was sent
	}
	return outcome(err)
}

func create(file string) Outcome {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_ = f.Close()       // nothing was written
		_ = os.Remove(file) // what could be made can be removed
	}
	return outcome(err)
}

func open(file string) Outcome {
	f, err := os.Open(file)
	if err == nil {
		_ = f.Close() // nothing was written
	}
	return outcome(err)
}

// isRestricted reports whether this process can get no privileges and is filtered.
func isRestricted() bool {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	return strings.Contains(string(text), "\nNoNewPrivs:\t1\n") && strings.Contains(string(text), "\nSeccomp:\t2\n")
}

// resources tries to change the limits and the priority of a process, in a way
// that changes nothing: to what the server has set itself, and to what it has.
func resources(pid int) []Outcome {
	priority, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
	if err != nil {
		return []Outcome{Failed}
	}
	const bias = 20 // the system call returns 20 - priority
	return []Outcome{
		outcome(unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)),
		outcome(unix.Setpriority(unix.PRIO_PROCESS, pid, bias-priority)),
	}
}
