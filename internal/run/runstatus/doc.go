// Package runstatus writes the status of Runs of Agents and of Workflows: the four conditions from one reason, events
// and metrics, and how long a finished Run is kept. The controllers of Runs decide the outcome.
package runstatus
