// Package schedule is the controller of Schedules: it makes Runs by the clock,
// each named after the time that it is for, so that none is made twice.
//
// Times are those of a wall clock: a time that a clock skips in spring is none,
// and one that it shows twice in autumn is its first. Until when all of them were
// seen to stands in the status; what is due is what came after, and when several
// did, the last one counts.
//
//	                    too late, or another is active (Forbid)
//	a time is due ─────────────────────────────────────────────▶ missed, and told
//	      │   ▲
//	      │   └── others are being stopped (Replace), or the cluster refused it
//	      ▼
//	a Run of it is made; afterwards finished Runs beyond the limits go
package schedule
