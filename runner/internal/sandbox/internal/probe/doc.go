// Package probe finds out what holds: a confined process tries what a program of
// the agent must not be able to do, and what came of it is the confinement that
// is reported.
package probe
