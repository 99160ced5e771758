// Package schedule is the controller of Schedules: it creates Runs at fixed times, each named after its time, so that
// none is created twice.
//
// Times are times of a wall clock: a time that the clock skips in spring does not exist, and if the clock shows a time
// twice in autumn, the first counts. The status has the last time that was handled; due times come after it. If several
// times are due, the last counts.
//
//	                    too late, or another is active (Forbid)
//	a time is due ──────────────────────────────────────────────▶ missed, with an Event
//	      │   ▲
//	      │   └── others are being stopped (Replace), or the API server refused the Run
//	      ▼
//	its Run is created; finished Runs beyond the history limits are deleted
package schedule
