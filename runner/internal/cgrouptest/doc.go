// Package cgrouptest bounds processes of tests by control groups, of version 1 or 2, so that
// a test cannot harm the machine. It needs root.
package cgrouptest
