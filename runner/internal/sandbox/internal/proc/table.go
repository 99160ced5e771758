package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
)

// A Process is one row of a Table.
type Process struct {
	ID        int
	Parent    int
	State     byte   // as in /proc: R, S, D, T, t, Z, X
	Threads   int    // also counts those that have ended and take a place in the process table
	Memory    int64  // resident memory in bytes
	StartTime uint64 // in clock ticks after boot; tells it from another process that reuses its PID
}

// Ended reports whether the process is a zombie. The state belongs to its first thread: a process with other threads
// has not ended.
func (p Process) Ended() bool { return (p.State == 'Z' || p.State == 'X') && p.Threads <= 1 }

// Stopped reports whether it is stopped by a signal or a tracer.
func (p Process) Stopped() bool { return p.State == 'T' || p.State == 't' }

// A Table is a snapshot of the processes, by parent. Processes that start or end while it is read may be missing. A
// process that exists and cannot be read is an error: a table without it would report that it ended.
type Table struct {
	children map[int][]Process
	// partial means that the ancestors of a process are unknown, because they ended
	// while the table was read. Below may then miss processes.
	partial bool
}

// sweeping is held by Sweep while all processes are stopped.
var sweeping sync.RWMutex

// ReadTable reads the process table, not during a Sweep.
func ReadTable() (Table, error) {
	sweeping.RLock()
	defer sweeping.RUnlock()
	return readTable()
}

func readTable() (Table, error) {
	names, err := entries("/proc")
	if err != nil {
		return Table{}, fmt.Errorf("reading the process table: %w", err)
	}
	all := make(map[int]Process, len(names))
	var line [1024]byte
	for _, name := range names {
		id, err := strconv.Atoi(name)
		if err != nil {
			continue // no process
		}
		p, err := stat(id, line[:])
		if err == nil {
			all[id] = p
		} else if !isGone(err) {
			return Table{}, fmt.Errorf("reading process %d: %w", id, err)
		}
	}
	return newTable(all, func(id int) (Process, error) { return stat(id, line[:]) })
}

func entries(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err //nolint:wrapcheck // readTable does
	}
	defer f.Close()
	return f.Readdirnames(-1) //nolint:wrapcheck // as above
}

// isGone reports whether an error means that a process has ended, or belongs to
// another user and is hidden.
func isGone(err error) bool {
	for _, one := range []error{syscall.ENOENT, syscall.ESRCH, syscall.EPERM, syscall.EACCES, io.EOF} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

// parentReads bounds how often a process is read again whose parent has ended.
const parentReads = 3

// newTable orders processes by parent, and reads what it lacks for that: a parent that
// started while the table was read, and the new parent of a process whose parent ended.
func newTable(all map[int]Process, read func(id int) (Process, error)) (Table, error) {
	b := tableBuilder{
		all: all, read: read, open: slices.Collect(maps.Values(all)),
		table: Table{children: make(map[int][]Process, len(all))},
	}
	for len(b.open) > 0 {
		p := b.open[0]
		b.open = b.open[1:]
		if err := b.place(p); err != nil {
			return Table{}, fmt.Errorf("reading process %d: %w", p.ID, err)
		}
	}
	return b.table, nil
}

type tableBuilder struct {
	all   map[int]Process
	open  []Process // without a place in the table
	read  func(id int) (Process, error)
	table Table
}

// place puts a process below its parent.
func (b *tableBuilder) place(p Process) error {
	for n := 0; n < parentReads && !isKnown(b.all, p.Parent); n++ {
		parent, err := b.read(p.Parent)
		if err == nil {
			b.all[parent.ID] = parent
			b.open = append(b.open, parent)
			break
		}
		if isGone(err) {
			p, err = b.read(p.ID)
		}
		if isGone(err) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	b.table.partial = b.table.partial || !isKnown(b.all, p.Parent)
	b.table.children[p.Parent] = append(b.table.children[p.Parent], p)
	return nil
}

// isKnown reports whether a parent is in the table, or is outside of what this process
// can see.
func isKnown(all map[int]Process, parent int) bool {
	_, ok := all[parent]
	return ok || parent == 0 || errors.Is(syscall.Kill(parent, 0), syscall.EPERM)
}

// stat reads the state of one process.
func stat(id int, line []byte) (Process, error) {
	p, err := statFile("/proc/"+strconv.Itoa(id)+"/stat", id, line)
	if err == nil && p.State == 'Z' && !p.Ended() {
		p.Memory = memoryOfThreads(id, line)
	}
	return p, err
}

// memoryOfThreads returns the memory of a process whose first thread has exited: the kernel
// shows it for the other threads only.
func memoryOfThreads(id int, line []byte) int64 {
	dir := "/proc/" + strconv.Itoa(id) + "/task/"
	names, _ := entries(dir) // a process that has ended has no memory
	for _, name := range names {
		if t, err := statFile(dir+name+"/stat", id, line); err == nil && t.Memory > 0 {
			return t.Memory // all have the same
		}
	}
	return 0
}

// statFile reads the state of a process or a thread. It runs for all processes many times a
// second, so it avoids the overhead of os.File.
func statFile(file string, id int, line []byte) (Process, error) {
	fd, err := syscall.Open(file, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return Process{}, err //nolint:wrapcheck // readTable does
	}
	defer func() { _ = syscall.Close(fd) }() // it was only read
	n, err := syscall.Read(fd, line)
	switch {
	case err != nil:
		return Process{}, err //nolint:wrapcheck // as above
	case n <= 0:
		return Process{}, io.EOF
	}
	p, ok := parse(id, line[:n])
	if !ok {
		return Process{}, fmt.Errorf("a line %q", line[:n]) //nolint:err113 // no caller compares it
	}
	return p, nil
}

// Fields of /proc/ID/stat, counted from the one behind the name, which may
// contain anything.
const (
	fieldState     = 0
	fieldParent    = 1
	fieldThreads   = 17
	fieldStartTime = 19
	fieldRSS       = 21
)

func parse(id int, line []byte) (Process, bool) {
	end := bytes.LastIndexByte(line, ')')
	if end < 0 {
		return Process{}, false
	}
	fields := bytes.Fields(line[end+1:])
	if len(fields) <= fieldRSS {
		return Process{}, false
	}
	parent, err := strconv.Atoi(string(fields[fieldParent]))
	if err != nil {
		return Process{}, false
	}
	threads, err := strconv.Atoi(string(fields[fieldThreads]))
	if err != nil {
		return Process{}, false
	}
	pages, err := strconv.ParseInt(string(fields[fieldRSS]), 10, 64)
	if err != nil {
		return Process{}, false
	}
	began, err := strconv.ParseUint(string(fields[fieldStartTime]), 10, 64)
	if err != nil {
		return Process{}, false
	}
	return Process{
		ID: id, Parent: parent, State: fields[fieldState][0], Threads: threads, Memory: pages * int64(os.Getpagesize()), StartTime: began,
	}, true
}

// A Count is how many processes there are, and how many threads they have together.
type Count struct{ Processes, Threads int }

// add adds a process. A process that has ended takes a place but has no threads.
func (c *Count) add(p Process) {
	c.Processes++
	c.Threads += max(p.Threads, 1)
}

// Count counts the descendants of a process that take a place in the process table, including ended ones until their
// parent waits for them. Ended children of the process itself are not counted, because it waits for them.
func (t Table) Count(id int) Count {
	var c Count
	for _, p := range t.children[id] {
		if p.ID == id {
			continue
		}
		if !p.Ended() {
			c.add(p)
		}
		t.countAll(p.ID, &c)
	}
	return c
}

func (t Table) countAll(id int, c *Count) {
	for _, p := range t.children[id] {
		if p.ID != id {
			c.add(p)
			t.countAll(p.ID, c)
		}
	}
}

// Children returns the children of a process.
func (t Table) Children(id int) []Process { return t.children[id] }

// Below returns the descendants of a process that are not zombies, except subtrees
// whose root spare accepts. A nil spare accepts none.
func (t Table) Below(id int, spare func(id int) bool) []Process {
	var all []Process
	for _, p := range t.children[id] {
		if p.ID == id || spare != nil && spare(p.ID) {
			continue
		}
		if !p.Ended() {
			all = append(all, p)
		}
		all = append(all, t.Below(p.ID, spare)...)
	}
	return all
}

// all returns all processes.
func (t Table) all() []Process {
	return slices.Concat(slices.Collect(maps.Values(t.children))...)
}

// stopped reports whether the table has a process and it was stopped.
func (t Table) stopped(p Process) bool {
	return slices.ContainsFunc(t.children[p.Parent], func(q Process) bool { return q.ID == p.ID && q.Stopped() })
}

// Descends reports whether a process is another one or descends from it. It is true
// for a process that does not exist any more, because that cannot be excluded.
func Descends(id, from int) bool {
	var line [1024]byte
	for range 1 << 16 { // deeper than any tree; ids may be reused while this looks
		if id == from {
			return true
		}
		if id <= 0 {
			return false
		}
		p, err := stat(id, line[:])
		if err != nil {
			return true
		}
		id = p.Parent
	}
	return true
}
