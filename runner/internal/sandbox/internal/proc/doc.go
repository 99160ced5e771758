// Package proc reads the process table of this PID namespace and kills process
// trees.
package proc
