// Package proc looks at the processes of this machine, or of this container, and
// ends whole trees of them.
package proc
