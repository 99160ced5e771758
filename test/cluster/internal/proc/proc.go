// Package proc starts programs that outlive their parent and recognizes them
// afterwards.
//
// A process ID alone does not identify a process, because the kernel uses the number again after the process has ended.
// A record therefore has the number, the time at which the kernel started the process, and the ID of the boot. Only a
// process that matches all three is ever signaled.
package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// An Identity identifies one process; no later process with the same number has it.
type Identity struct {
	PID     int    `json:"pid"`
	Started uint64 `json:"started"` // clock ticks since boot, as in /proc/<pid>/stat
	Boot    string `json:"boot"`    // the kernel's boot id
}

// Of identifies a living process.
func Of(pid int) (Identity, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Identity{}, fmt.Errorf("reading boot id: %w", err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Identity{}, fmt.Errorf("reading state of process %d: %w", pid, err)
	}
	state, started, err := parseStat(string(stat))
	if err != nil {
		return Identity{}, fmt.Errorf("reading state of process %d: %w", pid, err)
	}
	if state == "Z" || state == "X" {
		return Identity{}, fmt.Errorf("process %d has ended", pid)
	}
	return Identity{PID: pid, Started: started, Boot: strings.TrimSpace(string(boot))}, nil
}

// parseStat reads state and start time. The second field is the program's name in parentheses, which may contain spaces
// and parentheses, so fields are counted after the last parenthesis.
func parseStat(stat string) (state string, started uint64, err error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return "", 0, fmt.Errorf("unexpected format %q", stat)
	}
	started, err = strconv.ParseUint(fields[19], 10, 64)
	return fields[0], started, err
}

// Alive reports whether exactly this process still runs.
func (i Identity) Alive() bool {
	now, err := Of(i.PID)
	return err == nil && now == i
}

// Kill ends the process if it is alive, and never another process with its number.
func (i Identity) Kill() error {
	if !i.Alive() {
		return nil
	}
	if err := syscall.Kill(i.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("killing process %d: %w", i.PID, err)
	}
	return nil
}

// A Record describes a process that was started.
type Record struct {
	Identity
	Args []string `json:"args"`
}

// Read returns what a file records. Without a file it returns the zero Record, whose process is never alive.
func Read(path string) (Record, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return Record{}, nil
	}
	if err != nil {
		return Record{}, fmt.Errorf("reading process id: %w", err)
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, fmt.Errorf("reading process id from %s: %w", path, err)
	}
	return r, nil
}

// Write writes the record to a file, whole or not at all.
func (r Record) Write(path string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding process id: %w", err)
	}
	if err := os.WriteFile(path+".new", append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing process id: %w", err)
	}
	return os.Rename(path+".new", path)
}

// A Spec is a program to start.
type Spec struct {
	Args    []string
	Dir     string // working directory
	Log     string // file that output is appended to
	PIDFile string
}

// Start starts the program in a session of its own and writes its Record. The program does not inherit the environment
// of this process, because a proxy or a KUBECONFIG of the user would mislead a server. Nor does it inherit files that
// were open when this process started, such as the lock of a flock that waits for it.
func Start(s Spec) error {
	name := filepath.Base(s.Args[0])
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("opening log of %s: %w", name, err)
	}
	defer log.Close()
	cmd := exec.Command(s.Args[0], s.Args[1:]...) //nolint:noctx // it is to outlive us
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.Dir, log, log
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + s.Dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := keepFiles(); err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	go func() { _ = cmd.Wait() }() // while we live, the dead are not left as zombies
	i, err := Of(cmd.Process.Pid)
	if err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	return Record{i, s.Args}.Write(s.PIDFile)
}

// keepFiles marks the open files of this process as close-on-exec, so that started programs do not inherit them. Files
// that Go opened are marked already.
func keepFiles() error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, file := range open {
		if number, err := strconv.Atoi(file.Name()); err == nil && number > syscall.Stderr {
			syscall.CloseOnExec(number)
		}
	}
	return nil
}

// KillAll ends the processes and waits until the last is gone.
func KillAll(ctx context.Context, all []Identity) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var errs []error
	for _, i := range all {
		errs = append(errs, i.Kill())
	}
	for _, i := range all {
		errs = append(errs, Until(ctx, func() error {
			if i.Alive() {
				return fmt.Errorf("process %d does not end", i.PID)
			}
			return nil
		}))
	}
	return errors.Join(errs...)
}

// Until repeats try until it succeeds, and returns the last error when ctx ends.
func Until(ctx context.Context, try func() error) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-ticker.C:
		}
	}
}

// Find returns the living processes whose command line satisfies match.
func Find(match func(args []string) bool) ([]Identity, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var found []Identity
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil || !match(strings.Split(strings.TrimRight(string(data), "\x00"), "\x00")) {
			continue // a process that ended meanwhile needs no ending
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err != nil {
			continue
		}
		if i, err := Of(pid); err == nil {
			found = append(found, i)
		}
	}
	return found, nil
}
