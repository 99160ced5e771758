// Package outcome is what is said of a Run, whoever does its work: its four
// conditions from one reason, when it became final, what people are told by
// events and metrics, and how long a finished Run stays. The controllers of Runs
// decide; this is how their decisions read.
package runstatus
