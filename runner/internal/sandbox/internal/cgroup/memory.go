// Package cgroup reads the memory limit and usage of this container, from control
// groups of version 1 or 2.
package cgroup

import (
	"os"
	"path"
	"strconv"
	"strings"
)

// noLimit is larger than any real limit. Version 1 reports about 2^63 if there is
// no limit.
const noLimit = 1 << 60

// Root is the mount point of the control groups.
const Root = "/sys/fs/cgroup"

// Memory reads the files of one control group. The zero value has no limit.
type Memory struct {
	dir   string
	names names
	limit int64
}

// names are the names of files and fields in one version.
type names struct {
	limit, usage, stat, events string
	held                       []string // fields of stat that the kernel cannot reclaim
}

var (
	version1 = names{
		limit: "memory.limit_in_bytes", usage: "memory.usage_in_bytes", stat: "memory.stat", events: "memory.oom_control",
		held: []string{"rss", "shmem"},
	}
	version2 = names{
		limit: "memory.max", usage: "memory.current", stat: "memory.stat", events: "memory.events",
		held: []string{"anon", "shmem", "kernel_stack", "pagetables", "slab_unreclaimable", "sock"},
	}
)

// Find returns the control group of this process below root.
func Find(root string) Memory {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return Memory{}
	}
	return find(root, string(groups))
}

func find(root, groups string) Memory {
	for line := range strings.Lines(groups) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, below, _ := strings.Cut(rest, ":")
		var m Memory
		switch {
		case strings.Contains(","+controllers+",", ",memory,"):
			m = open(path.Join(root, "memory"), below, version1)
		case controllers == "":
			m = open(root, below, version2)
		}
		if m.limit > 0 {
			return m
		}
	}
	return Memory{}
}

// open reads the limit of a group at its path and at the root, because a container
// may see its own group as the root.
func open(root, below string, n names) Memory {
	for _, dir := range []string{path.Join(root, below), root} {
		limit, ok := number(path.Join(dir, n.limit))
		if ok && limit < noLimit {
			return Memory{dir: dir, names: n, limit: limit}
		}
	}
	return Memory{}
}

// Limit returns the memory limit in bytes; zero: no limit.
func (m Memory) Limit() int64 { return m.limit }

// Unreclaimable returns the used bytes that the kernel cannot reclaim.
func (m Memory) Unreclaimable() int64 {
	if m.limit == 0 {
		return 0
	}
	used, ok := number(path.Join(m.dir, m.names.usage))
	if !ok || used < m.limit/2 {
		return used // with caches: exact values matter only near the limit
	}
	all := fields(path.Join(m.dir, m.names.stat))
	if len(all) == 0 {
		return used
	}
	var held int64
	for _, name := range m.names.held {
		held += all[name]
	}
	return min(held, used)
}

// OOMKills returns how many processes of the container the OOM killer has ended.
func (m Memory) OOMKills() int64 {
	if m.limit == 0 {
		return 0
	}
	return fields(path.Join(m.dir, m.names.events))["oom_kill"]
}

func number(file string) (int64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

func fields(file string) map[string]int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	all := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			all[name] = n
		}
	}
	return all
}
