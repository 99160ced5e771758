// Package cgroup reads the memory limit and usage of this container, from control
// groups of version 1 or 2.
package cgroup
