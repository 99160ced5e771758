// Package probe measures the confinement: a confined process tries what commands
// must not be able to do, and the results are the confinement that is reported.
package probe
