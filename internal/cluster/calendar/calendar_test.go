package calendar

import (
	"strings"
	"testing"
	"time"
)

// some are the first n times of a calendar after one, as its own clock shows them.
func some(t *testing.T, c *Calendar, after string, n int) string {
	t.Helper()
	at, err := time.ParseInLocation("2006-01-02 15:04", after, c.zone)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for range n {
		if at = c.Next(at); at.IsZero() {
			return strings.Join(append(out, "never"), ", ")
		}
		out = append(out, at.In(c.zone).Format("01-02 15:04 MST"))
	}
	return strings.Join(out, ", ")
}

func TestNext(t *testing.T) {
	cases := map[string]struct {
		times, zone, after string
		want               string
	}{
		"every quarter of an hour":                        {"*/15 * * * *", "", "2030-01-01 11:50", "01-01 12:00 UTC, 01-01 12:15 UTC, 01-01 12:30 UTC"},
		"a time that is now is not the next":              {"0 12 * * *", "", "2030-01-01 12:00", "01-02 12:00 UTC, 01-03 12:00 UTC, 01-04 12:00 UTC"},
		"by the clock of a zone":                          {"30 3 * * 1-5", "Europe/Berlin", "2030-01-04 12:00", "01-07 03:30 CET, 01-08 03:30 CET, 01-09 03:30 CET"},
		"names of days and months":                        {"0 9 * jan mon", "", "2030-01-25 12:00", "01-28 09:00 UTC, 01-06 09:00 UTC, 01-13 09:00 UTC"},
		"a word for it":                                   {"@monthly", "", "2030-01-04 12:00", "02-01 00:00 UTC, 03-01 00:00 UTC, 04-01 00:00 UTC"},
		"a word with spaces":                              {" @daily ", "", "2030-01-04 12:00", "01-05 00:00 UTC, 01-06 00:00 UTC, 01-07 00:00 UTC"},
		"a leap day":                                      {"0 0 29 2 *", "", "2030-01-01 00:00", "02-29 00:00 UTC, 02-29 00:00 UTC, 02-29 00:00 UTC"},
		"a day that is not there":                         {"0 0 30 2 *", "", "2030-01-01 00:00", "never"},
		"a time that clocks skip is skipped":              {"30 2 * * *", "Europe/Berlin", "2030-03-29 12:00", "03-30 02:30 CET, 04-01 02:30 CEST, 04-02 02:30 CEST"},
		"so are some of many":                             {"*/30 * * * *", "Europe/Berlin", "2030-03-31 01:00", "03-31 01:30 CET, 03-31 03:00 CEST, 03-31 03:30 CEST"},
		"a time that clocks repeat counts once":           {"30 2 * * *", "Europe/Berlin", "2030-10-26 12:00", "10-27 02:30 CEST, 10-28 02:30 CET, 10-29 02:30 CET"},
		"so does each of many":                            {"*/30 * * * *", "Europe/Berlin", "2030-10-27 01:40", "10-27 02:00 CEST, 10-27 02:30 CEST, 10-27 03:00 CET"},
		"a midnight that clocks skip":                     {"0 0 * * *", "America/Havana", "2030-03-09 12:00", "03-11 00:00 CDT, 03-12 00:00 CDT, 03-13 00:00 CDT"},
		"a later hour of a day that begins at one":        {"0 5 * * *", "America/Havana", "2030-03-09 12:00", "03-10 05:00 CDT, 03-11 05:00 CDT, 03-12 05:00 CDT"},
		"a shift of half an hour":                         {"45 1 * * *", "Australia/Lord_Howe", "2030-04-06 12:00", "04-07 01:45 +11, 04-08 01:45 +1030, 04-09 01:45 +1030"},
		"a whole day that was never there":                {"0 12 * * *", "Pacific/Apia", "2011-12-28 13:00", "12-29 12:00 -10, 12-31 12:00 +14, 01-01 12:00 +14"},
		"either the day of the month or that of the week": {"0 0 13 * 5", "", "2030-01-10 00:00", "01-11 00:00 UTC, 01-13 00:00 UTC, 01-18 00:00 UTC"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := Read(tc.times, tc.zone)
			if err != nil {
				t.Fatal(err)
			}
			if got := some(t, c, tc.after, strings.Count(tc.want, ",")+1); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// Asked in the second of two equal hours, the first of them is over.
func TestNextWithinARepeatedHour(t *testing.T) {
	c, err := Read("30 2 * * *", "Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	first := time.Date(2030, 10, 27, 0, 30, 0, 0, time.UTC) // half past two, summer time
	for name, tc := range map[string]struct{ after, want time.Time }{
		"before the first":  {first.Add(-time.Minute), first},
		"after the first":   {first.Add(time.Minute), first.Add(25 * time.Hour)},
		"before the second": {first.Add(50 * time.Minute), first.Add(25 * time.Hour)},
		"after the second":  {first.Add(70 * time.Minute), first.Add(25 * time.Hour)},
	} {
		if got := c.Next(tc.after); !got.Equal(tc.want) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestWhatIsNoTime(t *testing.T) {
	const right = `write minute, hour, day of the month, month and day of the week: "30 3 * * 1-5" is`
	cases := map[string]struct {
		times, zone string
		want        []string
	}{
		"a part too few":             {"0 3 * *", "", []string{`spec.schedule "0 3 * *" cannot be read: expected exactly 5 fields, found 4`, right}},
		"seconds":                    {"0 0 3 * * *", "", []string{"found 6", right}},
		"an hour that is not there":  {"0 25 * * *", "", []string{"end of range (25) above maximum (23)", right}},
		"a word that is none":        {"@nightly", "", []string{"unrecognized descriptor: @nightly", right}},
		"nothing":                    {"  ", "", []string{"empty", right}},
		"a part that is empty":       {", * * * *", "", []string{"no time matches", right}},
		"a zone in the text":         {"TZ=UTC 0 3 * * *", "", []string{"it names a time zone"}},
		"a zone and nothing else":    {"CRON_TZ=UTC", "", []string{"it names a time zone"}},
		"an interval":                {"@every 1h", "", []string{"@every has no fixed times"}},
		"a zone that is not there":   {"@daily", "Europe/Berln", []string{`spec.timeZone "Europe/Berln" cannot be read: unknown time zone Europe/Berln; write the name of a time zone: Europe/Berlin`}},
		"the operator's own zone":    {"@daily", "Local", []string{"a Schedule cannot use Local, the time zone of the operator", "Europe/Berlin"}},
		"a zone outside of the list": {"@daily", "../../etc/passwd", []string{"spec.timeZone"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Read(tc.times, tc.zone)
			if err == nil {
				t.Fatal("it is read")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("it says %q, want %q in it", err, want)
				}
			}
		})
	}
}

// The last time and the count agree with looking at all of them.
func TestLastAndCount(t *testing.T) {
	start := time.Date(2030, 10, 20, 10, 59, 30, 0, time.UTC)
	for _, times := range []string{"* * * * *", "*/7 3 * * *", "30 2 * * *", "@monthly", "0 0 29 2 *", "15,45 8-18 * * 1-5"} {
		for _, zone := range []string{"UTC", "Europe/Berlin", "America/Havana", "Australia/Lord_Howe"} {
			c, err := Read(times, zone)
			if err != nil {
				t.Fatal(err)
			}
			for _, span := range []time.Duration{time.Second, time.Minute, 59 * time.Minute, 30 * time.Hour, 12 * 24 * time.Hour} {
				agrees(t, c, start, start.Add(span))
			}
		}
	}
}

func agrees(t *testing.T, c *Calendar, after, until time.Time) {
	t.Helper()
	var want time.Time
	n := 0
	for at := c.Next(after); !at.IsZero() && !at.After(until); at = c.Next(at) {
		want = at
		n++
	}
	if got := c.Last(after, until); !got.Equal(want) {
		t.Errorf("in %s, until %s: the last is %s, want %s", c.zone, until, got, want)
	}
	if got := c.Count(after, until, 100); got != min(n, 100) {
		t.Errorf("in %s, until %s: counted %d, want %d", c.zone, until, got, min(n, 100))
	}
}

// Whatever the schema lets through, reading it and asking ends.
func FuzzRead(f *testing.F) {
	for _, times := range []string{"30 3 * * 1-5", "@daily", "*/61 * * * *", "TZ=", "0 0 31 2 *", "1-0 * * * *", "? ? ? ? ?", ",,,, * * * *", "0/99999999999 * * * *"} {
		f.Add(times, "Europe/Berlin")
	}
	f.Fuzz(func(t *testing.T, times, zone string) {
		if len(times) > 128 || len(zone) > 64 {
			return
		}
		c, err := Read(times, zone)
		if err != nil {
			return
		}
		at := time.Date(2030, 10, 20, 10, 59, 30, 0, time.UTC)
		for range 5 {
			next := c.Next(at)
			if next.IsZero() {
				return
			}
			if !next.After(at) {
				t.Fatalf("after %s comes %s", at, next)
			}
			at = next
		}
	})
}

func BenchmarkAWayOfTenYears(b *testing.B) {
	c, err := Read("* * * * *", "Europe/Berlin")
	if err != nil {
		b.Fatal(err)
	}
	now := time.Date(2030, 10, 20, 10, 59, 30, 0, time.UTC)
	for b.Loop() {
		c.Last(now.AddDate(-10, 0, 0), now)
		c.Count(now.AddDate(-10, 0, 0), now, 102)
	}
}
