package schedule

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

var update = flag.Bool("update", false, "rewrite the golden stories")

// nightly is a Schedule as the API server shows it, made at noon.
func nightly(mods ...func(*v1alpha1.Schedule)) *v1alpha1.Schedule {
	well, badly := int32(3), int32(5)
	s := &v1alpha1.Schedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "audit", UID: types.UID("schedule-uid"), Generation: 1, CreationTimestamp: metav1.NewTime(gen.Noon)},
		Spec: v1alpha1.ScheduleSpec{
			Schedule: "0 3 * * *", ConcurrencyPolicy: v1alpha1.ConcurrencyForbid, StartingDeadline: "10m",
			SuccessfulRunsHistoryLimit: &well, FailedRunsHistoryLimit: &badly,
			RunTemplate: v1alpha1.RunTemplate{Spec: v1alpha1.RunSpec{Agent: "auditor", Prompt: "Audit it."}},
		},
	}
	for _, mod := range mods {
		mod(s)
	}
	return s
}

// A beat is something that happens at a time.
type beat struct {
	at   string // day and time of January 2030, which begins on a Tuesday
	what string
	do   func(*cluster)
}

type story struct {
	title    string
	schedule func(*v1alpha1.Schedule)
	beats    []beat
	until    string
}

func every(times string) func(*v1alpha1.Schedule) {
	return func(s *v1alpha1.Schedule) { s.Spec.Schedule = times }
}

func policy(p v1alpha1.ConcurrencyPolicy) func(*v1alpha1.Schedule) {
	return func(s *v1alpha1.Schedule) { s.Spec.Schedule, s.Spec.ConcurrencyPolicy = "0 * * * *", p }
}

// stories are what users live through. Each is played; what was seen and done is
// its golden file.
var stories = map[string]story{
	"nightly": {
		title: "a Run each night",
		beats: []beat{{"2 03:20:00", "the Run succeeds", succeeds}, {"3 03:20:00", "the Run fails", fails}},
		until: "4 12:00:00",
	},
	"zone-spring": {
		title: "an hour that the clocks skip is skipped",
		schedule: func(s *v1alpha1.Schedule) {
			s.Spec.Schedule, s.Spec.TimeZone = "30 2 * * *", "Europe/Berlin"
			s.CreationTimestamp = metav1.Date(2030, 3, 29, 12, 0, 0, 0, time.UTC)
		},
		beats: []beat{{"89 03:00:00", "the Run succeeds", succeeds}},
		until: "92 12:00:00",
	},
	"zone-autumn": {
		title: "an hour that the clocks repeat counts once",
		schedule: func(s *v1alpha1.Schedule) {
			s.Spec.Schedule, s.Spec.TimeZone = "30 2 * * *", "Europe/Berlin"
			s.CreationTimestamp = metav1.Date(2030, 10, 26, 12, 0, 0, 0, time.UTC)
		},
		beats: []beat{{"300 01:00:00", "the Run succeeds", succeeds}},
		until: "301 12:00:00",
	},
	"allow": {
		title:    "Allow: another begins while one is active",
		schedule: policy(v1alpha1.ConcurrencyAllow),
		until:    "1 14:30:00",
	},
	"forbid": {
		title:    "Forbid: a time is left out while a Run is active",
		schedule: policy(v1alpha1.ConcurrencyForbid),
		beats:    []beat{{"1 14:20:00", "the Run succeeds", succeeds}},
		until:    "1 15:30:00",
	},
	"replace": {
		title:    "Replace: the active one is stopped, and the new one begins when it has ended",
		schedule: policy(v1alpha1.ConcurrencyReplace),
		beats:    []beat{{"1 14:00:20", "the Run has stopped", fails}},
		until:    "1 14:30:00",
	},
	"replace-deaf": {
		title:    "Replace: one that does not end in time is in the way",
		schedule: policy(v1alpha1.ConcurrencyReplace),
		beats:    []beat{{"1 14:30:00", "the Run has stopped", fails}},
		until:    "1 15:30:00",
	},
	"suspended": {
		title:    "times that pass while it is suspended are not made up for",
		schedule: every("0 * * * *"),
		beats:    []beat{{"1 12:30:00", "somebody suspends it", suspends(true)}, {"1 15:05:00", "somebody resumes it", suspends(false)}},
		until:    "1 16:30:00",
	},
	"away-briefly": {
		title: "an operator that was away for less than the deadline makes the Run late",
		beats: []beat{{"2 02:50:00", "the operator leaves", leaves}, {"2 03:08:00", "the operator is back", returns}},
		until: "2 12:00:00",
	},
	"away-long": {
		title: "one that was away for longer has missed it",
		beats: []beat{{"2 02:50:00", "the operator leaves", leaves}, {"2 03:11:00", "the operator is back", returns}},
		until: "2 12:00:00",
	},
	"away-for-several": {
		title:    "of several times that passed the last one counts",
		schedule: every("*/5 * * * *"),
		beats:    []beat{{"1 12:01:00", "the operator leaves", leaves}, {"1 12:31:00", "the operator is back", returns}},
		until:    "1 12:34:00",
	},
	"away-for-years": {
		title:    "after years not every minute is counted",
		schedule: every("* * * * *"),
		beats:    []beat{{"1 12:00:30", "the operator leaves", leaves}, {"3000 12:00:30", "the operator is back", returns}},
		until:    "3000 12:00:59",
	},
	"jitter": {
		title:    "each time is put off by the same",
		schedule: func(s *v1alpha1.Schedule) { d := v1alpha1.Duration("30m"); s.Spec.Jitter = &d },
		beats:    []beat{{"2 04:00:00", "the Run succeeds", succeeds}},
		until:    "3 12:00:00",
	},
	"history": {
		title: "finished Runs beyond the limits go, the oldest first",
		schedule: func(s *v1alpha1.Schedule) {
			s.Spec.Schedule = "0 * * * *"
			*s.Spec.SuccessfulRunsHistoryLimit, *s.Spec.FailedRunsHistoryLimit = 1, 0
		},
		beats: []beat{
			{"1 13:10:00", "the Run succeeds", succeeds},
			{"1 14:10:00", "the Run fails", fails},
			{"1 15:10:00", "the Run succeeds", succeeds},
		},
		until: "1 16:30:00",
	},
	"back": {
		title:    "a clock that is put back makes nothing twice",
		schedule: policy(v1alpha1.ConcurrencyAllow),
		beats:    []beat{{"1 14:05:00", "the clock is put back by two hours", func(c *cluster) { c.now = c.now.Add(-2 * time.Hour) }}},
		until:    "1 15:30:00",
	},
	"back-by-years": {
		title: "a clock that was years ahead is not waited for",
		beats: []beat{
			{"2 04:00:00", "the Run succeeds", succeeds},
			{"2 05:00:00", "the operator leaves", leaves},
			{"1000 12:00:00", "the operator is back, with a clock that is wrong", returns},
			{"1000 12:00:01", "the clock is right again", func(c *cluster) { c.now = gen.Noon.AddDate(0, 0, 1) }},
		},
		until: "5 12:00:00",
	},
	"changed": {
		title: "new times hold from when they are said",
		beats: []beat{{"1 18:00:00", "somebody wants it at two", changes(func(s *v1alpha1.ScheduleSpec) { s.Schedule = "0 14 * * *" })}},
		until: "2 15:00:00",
	},
	"changed-otherwise": {
		title: "a change of anything else misses nothing",
		beats: []beat{
			{"2 02:59:59", "the operator leaves", leaves},
			{"2 03:00:30", "somebody changes the prompt", changes(func(s *v1alpha1.ScheduleSpec) { s.RunTemplate.Spec.Prompt = "Audit it well." })},
			{"2 03:01:00", "the operator is back", returns},
		},
		until: "2 15:00:00",
	},
	"invalid": {
		title:    "what is no time is told, and makes up for nothing when it is one",
		schedule: every("0 25 * * *"),
		beats:    []beat{{"1 13:30:00", "somebody mends it", changes(func(s *v1alpha1.ScheduleSpec) { s.Schedule = "0 * * * *" })}},
		until:    "1 14:30:00",
	},
	"too-large": {
		title: "a spec that is not kept is told, deletes no Runs, and makes up for nothing when it is shorter",
		schedule: func(s *v1alpha1.Schedule) {
			s.Spec.Schedule = "0 * * * *"
			*s.Spec.SuccessfulRunsHistoryLimit = 9
		},
		beats: []beat{
			{"1 13:10:00", "the Run succeeds", succeeds},
			{"1 14:10:00", "the Run succeeds", succeeds},
			{"1 15:10:00", "the Run succeeds", succeeds},
			{"1 16:10:00", "the Run succeeds", succeeds},
			{"1 16:30:00", "somebody adds a large input", grows},
			{"1 18:30:00", "somebody removes it", shrinks},
		},
		until: "1 19:30:00",
	},
	"never": {
		title:    "what never comes is told as well",
		schedule: every("0 0 31 2 *"),
		until:    "1 14:30:00",
	},
	"taken": {
		title: "a name that is somebody else's is told",
		beats: []beat{{"1 12:00:01", "somebody takes the name", func(c *cluster) { c.taken = nameOf("audit", time.Date(2030, 1, 2, 3, 0, 0, 0, time.UTC)) }}},
		until: "2 12:00:00",
	},
}

func TestStories(t *testing.T) {
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			got := play(t, s)
			file := filepath.Join("testdata", "stories", name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the story is another (-want +got):\n%s", diff)
			}
		})
	}
}

func play(t *testing.T, s story) string {
	t.Helper()
	mod := s.schedule
	if mod == nil {
		mod = func(*v1alpha1.Schedule) {}
	}
	c := newCluster(nightly(mod))
	c.log = []string{s.title}
	c.note("it is made: %s", c.schedule.Spec.Schedule)
	c.step()
	for _, b := range s.beats {
		c.until(moment(t, b.at))
		c.note("%s", b.what)
		b.do(c)
		if !c.away {
			c.step()
		}
	}
	c.until(moment(t, s.until))
	return strings.Join(c.log, "\n") + "\n"
}

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	var day, hour, minute, sec int
	if _, err := fmt.Sscanf(text, "%d %d:%d:%d", &day, &hour, &minute, &sec); err != nil {
		t.Fatal(err)
	}
	return time.Date(2030, 1, day, hour, minute, sec, 0, time.UTC)
}
