//go:build linux

package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/probe"
)

const (
	// probeTime bounds all attempts together.
	probeTime = 5 * time.Second
	// maxFindings bounds the output of the probe in bytes: confined processes may
	// interfere with it.
	maxFindings = 16 << 10
)

// targets are what the probe tries: the metadata service, a public address, and the API
// server if its port is low.
func targets(socket string, environ []string) probe.Targets {
	t := probe.Targets{Server: os.Getpid(), Dir: filepath.Dir(socket), Addresses: []string{"169.254.169.254:80", "1.1.1.1:443"}}
	host, port := lookup(environ, "KUBERNETES_SERVICE_HOST"), lookup(environ, "KUBERNETES_SERVICE_PORT")
	if number, err := strconv.Atoi(port); err == nil && number < 1024 && host != "" {
		t.Addresses = append(t.Addresses, net.JoinHostPort(host, port))
	}
	return t
}

// lookup returns the last value of a variable in an environment.
func lookup(environ []string, name string) string {
	for _, entry := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// probeConfinement measures what is enforced. What cannot be measured is
// unenforced.
func (s *server) probeConfinement() sandbox.Confinement {
	nothing := sandbox.Confinement{Process: sandbox.Unenforced, Files: sandbox.Unenforced, Network: sandbox.Unenforced}
	if s.options.Open {
		return nothing
	}
	nothing.LandlockABI = s.launcher.applied.ABI
	findings, err := s.runProbe()
	if err != nil {
		s.log("trying the confinement: %v", err)
		return nothing
	}
	return probe.Judge(findings, s.launcher.applied.ABI)
}

// runProbe runs the probe in a confined process.
func (s *server) runProbe() (probe.Findings, error) {
	var f probe.Findings
	t := targets(s.options.Socket, s.options.Environ)
	file, err := os.CreateTemp(t.Dir, ".bait-*")
	if err != nil {
		return f, fmt.Errorf("creating a file to remove: %w", err)
	}
	defer os.Remove(file.Name()) //nolint:errcheck // the probe may have removed it
	defer file.Close()
	t.ProbeFile = file.Name()
	answer, err := s.startProbe(t)
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(answer, &f); err != nil {
		return f, fmt.Errorf("reading the result: %w", err)
	}
	return f, nil
}

// startProbe starts the process, sends it the targets, and reads its findings.
func (s *server) startProbe(t probe.Targets) ([]byte, error) {
	question, err := json.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("writing what to try: %w", err)
	}
	input, tell, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	defer input.Close()
	defer tell.Close()
	hear, output, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	defer hear.Close()
	one := &command{ended: make(chan struct{})}
	err = s.commands.add(one, func() (int, error) {
		return s.launcher.launch("probe", []*os.File{input, output, os.Stderr})
	})
	_ = output.Close() // the process has its own
	if err != nil {
		return nil, err
	}
	_, _ = tell.Write(question) // it fits in the pipe; a process that does not read it does not answer
	_ = tell.Close()            // as above
	_ = hear.SetReadDeadline(s.now().Add(probeTime))
	answer, err := io.ReadAll(io.LimitReader(hear, maxFindings))
	if err != nil {
		return nil, fmt.Errorf("waiting for the result: %w", err)
	}
	return answer, nil
}
