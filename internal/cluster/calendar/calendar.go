// Package calendar computes the times of a cron expression by the wall clock of a time zone.
package calendar

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // the operator's image has none

	"github.com/robfig/cron/v3"
)

// A Calendar has the times of a Schedule, on the wall clock of its time zone.
type Calendar struct {
	times string
	// wall has no zone: its times are wall clock times, written as UTC.
	wall *cron.SpecSchedule
	zone *time.Location
}

// horizon is the number of years in which a calendar must have a time.
const horizon = 5

const (
	exampleTimes = `write minute, hour, day of the month, month and day of the week: "30 3 * * 1-5" is half past three from Monday to Friday`
	exampleZone  = "write the name of a time zone: Europe/Berlin; without one it is UTC"
)

var (
	errOtherZone = errors.New("it names a time zone")
	errEvery     = errors.New("@every has no fixed times")
	errNoTimes   = errors.New("one of its fields is empty, so that no time matches")
	errLocal     = errors.New("a Schedule cannot use Local, the time zone of the operator")
)

// Read returns the calendar of a Schedule. Its error describes what is wrong and what to write.
func Read(times, zone string) (*Calendar, error) {
	if zone == "" {
		zone = "UTC"
	}
	wall, err := parse(times)
	if err != nil {
		return nil, fmt.Errorf("spec.schedule %q cannot be read: %w; %s", times, err, exampleTimes)
	}
	location, err := time.LoadLocation(zone)
	if err == nil && location == time.Local {
		err = errLocal
	}
	if err != nil {
		return nil, fmt.Errorf("spec.timeZone %q cannot be read: %w; %s", zone, err, exampleZone)
	}
	return &Calendar{times: times, wall: wall, zone: location}, nil
}

// parse parses a cron expression. It refuses time zones in the text, as the schema does, because the parser accepts
// them and panics on some.
func parse(times string) (*cron.SpecSchedule, error) {
	if strings.Contains(times, "TZ=") {
		return nil, errOtherZone
	}
	parsed, err := cron.ParseStandard(strings.TrimSpace(times))
	if err != nil {
		return nil, err
	}
	wall, fixed := parsed.(*cron.SpecSchedule)
	if !fixed {
		return nil, errEvery
	}
	if slices.Contains([]uint64{wall.Minute, wall.Hour, wall.Dom, wall.Month, wall.Dow}, 0) {
		return nil, errNoTimes
	}
	wall.Location = time.UTC
	return wall, nil
}

// Check returns an error if no time comes within the horizon.
func (c *Calendar) Check(now time.Time) error {
	if c.Next(now).IsZero() {
		return fmt.Errorf("spec.schedule %q names no time within %d years; %s", c.times, horizon, exampleTimes) //nolint:err113 // for a condition
	}
	return nil
}

// Next returns the first time after another, or zero if there is none within the horizon.
func (c *Calendar) Next(after time.Time) time.Time {
	local := after.In(c.zone)
	shown := wallClock(local)
	for end := local.Year() + horizon; shown.Year() <= end; {
		if shown = c.wall.Next(shown); shown.IsZero() {
			return shown
		}
		if t, exists := c.first(shown); exists && t.After(after) {
			return t
		}
	}
	return time.Time{}
}

// wallClock returns a time on the wall clock, written as UTC.
func wallClock(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// first returns when a clock first shows a time; false if it skips the time.
func (c *Calendar) first(shown time.Time) (time.Time, bool) {
	t := time.Date(shown.Year(), shown.Month(), shown.Day(), shown.Hour(), shown.Minute(), 0, 0, c.zone)
	if !wallClock(t).Equal(shown) {
		return time.Time{}, false
	}
	began, _ := t.ZoneBounds()
	if began.IsZero() {
		return t, true
	}
	_, now := t.Zone()
	_, before := began.Add(-time.Second).Zone()
	if back := time.Duration(before-now) * time.Second; back > 0 && t.Sub(began) < back {
		return t.Add(-back), true
	}
	return t, true
}

// Last returns the last time in (after, until], or zero. It is a binary search, because there can be very many times;
// they are at least a minute apart.
func (c *Calendar) Last(after, until time.Time) time.Time {
	comes := func(since time.Time) bool {
		t := c.Next(since)
		return !t.IsZero() && !t.After(until)
	}
	if !comes(after) {
		return time.Time{}
	}
	for beyond := until; beyond.Sub(after) > time.Minute; {
		if middle := after.Add(beyond.Sub(after) / 2); comes(middle) {
			after = middle
		} else {
			beyond = middle
		}
	}
	return c.Next(after)
}

// Count returns how many times there are in (after, until], at most limit.
func (c *Calendar) Count(after, until time.Time, limit int) int {
	n := 0
	for t := c.Next(after); n < limit && !t.IsZero() && !t.After(until); t = c.Next(t) {
		n++
	}
	return n
}
