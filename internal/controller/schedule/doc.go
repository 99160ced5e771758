// Package schedule is the controller of Schedules: it creates Runs at fixed times, each named
// after its time, so that none is created twice.
//
// Times are those of a wall clock: a time that a clock skips in spring does not exist, and of
// one that it shows twice in autumn the first counts. The status has the last time that needs
// nothing more; what is due comes after it. If several times are due, the last counts.
//
//	                    too late, or another is active (Forbid)
//	a time is due ──────────────────────────────────────────────▶ missed, with an Event
//	      │   ▲
//	      │   └── others are being stopped (Replace), or the API server refused the Run
//	      ▼
//	its Run is created; finished Runs beyond the history limits are deleted
package schedule
