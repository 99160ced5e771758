//go:build linux

package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
)

// dialTimeout bounds each connection; all are tried concurrently.
const dialTimeout = time.Second

// Targets are what Run tries to reach and to change.
type Targets struct {
	// Addresses have ports below 1024: metadata services, the API server, the Internet.
	Addresses []string
	Server    int    // the process id of the sandbox's server
	Dir       string // a directory that must not be changed
	ProbeFile string // a file in it, to be removed
}

// An Outcome is the result of one attempt.
type Outcome string

// The outcomes.
const (
	Refused   Outcome = "Refused" // by the kernel: EACCES or EPERM
	Failed    Outcome = "Failed"  // with another error, for example a timeout
	Succeeded Outcome = "Succeeded"
)

// Findings are the outcomes of all attempts.
type Findings struct {
	Addresses  []Outcome
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
	f.Addresses = dial(&all, t.Addresses)
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		for _, kind := range []int{unix.SOCK_DGRAM, unix.SOCK_RAW} {
			f.Datagrams = append(f.Datagrams, socket(family, kind))
		}
	}
	f.Files = []Outcome{
		create(filepath.Join(t.Dir, "probe")),
		outcome(os.Truncate(t.ProbeFile, 0)),
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

// outcome classifies the error of an attempt.
func outcome(err error) Outcome {
	switch {
	case err == nil:
		return Succeeded
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return Refused
	}
	return Failed
}

// dial tries addresses concurrently. The outcomes are complete when all is done.
func dial(all *sync.WaitGroup, addresses []string) []Outcome {
	outcomes := make([]Outcome, len(addresses))
	for i, a := range addresses {
		all.Go(func() { outcomes[i] = connect(a) })
	}
	return outcomes
}

func connect(address string) Outcome {
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(context.Background(), "tcp", address)
	if err == nil {
		_ = conn.Close() // nothing was sent
	}
	if errors.Is(err, unix.ECONNREFUSED) {
		err = nil // no server, but the connection was not blocked
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
		_ = os.Remove(file) // clean up
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

// isRestricted reports whether no_new_privs and seccomp are in force.
func isRestricted() bool {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	return strings.Contains(string(text), "\nNoNewPrivs:\t1\n") && strings.Contains(string(text), "\nSeccomp:\t2\n")
}

// resources tries to set the limits and the priority of a process to the values
// that they already have.
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

// Judge derives the confinement from findings. What was not tried counts as unenforced. For the network the best result
// is PortsOnly: NetworkPolicies close higher ports, which the probe does not try.
func Judge(f Findings, abi int) sandbox.Confinement {
	c := sandbox.Confinement{
		Process: sandbox.Unenforced, Files: sandbox.Unenforced, Network: sandbox.Unenforced, LandlockABI: abi,
	}
	if f.Restricted && refused(f.Secrets) && refused(f.Resources) {
		c.Process = sandbox.Enforced
	}
	if refused(f.Files) {
		c.Files = sandbox.Enforced
	}
	if refused(f.Addresses) && refused(f.Datagrams) {
		c.Network = sandbox.PortsOnly
	}
	return c
}

// refused reports whether all attempts were refused; false if there were none.
func refused(all []Outcome) bool {
	return len(all) > 0 && !slices.ContainsFunc(all, func(o Outcome) bool { return o != Refused })
}
