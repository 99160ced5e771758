// Package children manages child Runs, of workflows and of agents: it names and creates them, sets their desired
// states, and divides a budget among them.
package children
