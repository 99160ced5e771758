package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/step"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func options(dir string, attempt int) Options {
	return Options{Dir: dir, RunUID: "uid-1", Attempt: attempt, Now: func() time.Time { return noon }}
}

func open(t *testing.T, o Options) *Dir {
	t.Helper()
	d, err := Open(o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// say appends texts as steps and closes the journal.
func say(t *testing.T, o Options, texts ...string) {
	t.Helper()
	d := open(t, o)
	for _, text := range texts {
		if err := d.Append(textRecord(text)); err != nil {
			t.Fatalf("Append: %v", err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

func textRecord(text string) Record {
	return Record{Kind: KindStep, Step: &step.Step{Role: step.RoleUser, Parts: []step.Part{{Kind: step.PartText, Text: text}}}}
}

// story tells a journal in words: each record's kind, or what was said.
func story(t *testing.T, l Log) string {
	t.Helper()
	var words []string
	for r, err := range l.Read() {
		switch {
		case err != nil:
			words = append(words, "error: "+err.Error())
		case r.Step != nil:
			words = append(words, r.Step.Text())
		case r.Mark != nil:
			words = append(words, string(r.Mark.Type))
		default:
			words = append(words, string(r.Kind))
		}
	}
	return strings.Join(words, " ")
}

func TestWhatWasAppendedIsReadBack(t *testing.T) {
	dir := t.TempDir()
	say(t, options(dir, 1), "a", "b")
	say(t, options(dir, 1), "c")
	say(t, options(dir, 2), "d")
	got := story(t, open(t, options(dir, 4)))
	if want := "header a b restarted c header d header"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestADurableJournalIsTheSame(t *testing.T) {
	o := options(t.TempDir(), 1)
	o.Durable = true
	say(t, o, "a")
	if got, want := story(t, open(t, o)), "header a restarted"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A character device takes what is written, and cannot be synced.
func TestARecordIsNotAppendedBeforeItIsOnTheDisk(t *testing.T) {
	for _, durable := range []bool{false, true} {
		o := options(t.TempDir(), 1)
		o.Durable = durable
		d := open(t, o)
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		d.file = null
		if err := d.Append(textRecord("a")); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("durable %t: Append() = %v, want the failure to sync", durable, err)
		}
	}
}

func TestOnlyADurableJournalHoldsRoomBack(t *testing.T) {
	o := options(t.TempDir(), 1)
	say(t, o, "a")
	if _, err := os.Stat(reservePath(o.Dir)); err == nil {
		t.Error("a journal on the pod's own disk holds room back")
	}
}

func TestOpenRefuses(t *testing.T) {
	cases := map[string]struct {
		prepare func(t *testing.T, dir string)
		want    error
	}{
		"a directory that a later attempt has taken over": {
			prepare: func(t *testing.T, dir string) { say(t, options(dir, 3)) },
			want:    &SupersededError{Attempt: 2, Later: 3},
		},
		"the directory of another Run": {
			prepare: func(t *testing.T, dir string) {
				o := options(dir, 1)
				o.RunUID = "uid-0"
				say(t, o)
			},
			want: &ForeignError{RunUID: "uid-0", Want: "uid-1"},
		},
		"a directory that another runner holds": {
			prepare: func(t *testing.T, dir string) { open(t, options(dir, 1)) },
			want:    &LockedError{},
		},
		"damage in the middle": {
			prepare: func(t *testing.T, dir string) {
				say(t, options(dir, 1), "abc", "def")
				path := segmentPath(dir, 1)
				data, _ := os.ReadFile(path)
				data = []byte(strings.Replace(string(data), "abc", "abd", 1))
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
			},
			want: &CorruptError{File: "journal-0001.jsonl", Line: 2, Reason: "its checksum is wrong"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tc.prepare(t, dir)
			if locked := (*LockedError)(nil); errors.As(tc.want, &locked) {
				locked.Dir = dir
			}
			_, err := Open(options(dir, 2))
			if err == nil || err.Error() != tc.want.Error() {
				t.Errorf("Open() = %v, want %v", err, tc.want)
			}
		})
	}
}

func TestALockNamesTheProcessThatHoldsIt(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{4711, 1, 0} { // each shorter than the one before
		t.Run(strconv.Itoa(pid), func(t *testing.T) {
			dir := t.TempDir()
			before := options(dir, 1)
			before.PID = 123456
			say(t, before)
			o := options(dir, 1)
			o.PID = pid
			held := open(t, o)
			want := LockedError{Dir: dir, Own: true, PID: pid, Host: host}
			if pid == 0 {
				want.Host = ""
			}
			isLocked(t, want)
			if err := held.Close(); err != nil {
				t.Fatal(err)
			}
			say(t, options(dir, 1))
		})
	}
}

// Two containers on one volume have processes with the same ids: only this process knows which locks are its own.
func TestALockOfAnotherContainerIsNotThatOfThisProcess(t *testing.T) {
	cases := map[string]LockedError{
		fmt.Sprintf("%d web-1\n", os.Getpid()): {PID: os.Getpid(), Host: "web-1"},
		"4711\n":                               {PID: 4711},
		"":                                     {},
		"no number":                            {},
		"-1 web-1\n":                           {},
	}
	for text, want := range cases {
		t.Run(text, func(t *testing.T) {
			want.Dir = t.TempDir()
			say(t, options(want.Dir, 1)) // it was locked here, and is not any more
			f, err := os.OpenFile(filepath.Join(want.Dir, "lock"), os.O_RDWR|os.O_TRUNC, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteString(text); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
				t.Fatal(err)
			}
			isLocked(t, want)
		})
	}
}

// isLocked fails the test if a directory is not locked in this way.
func isLocked(t *testing.T, want LockedError) {
	t.Helper()
	_, err := Open(options(want.Dir, 2))
	if locked, ok := errors.AsType[*LockedError](err); !ok || *locked != want {
		t.Errorf("Open() = %#v, want %#v", err, want)
	}
}

func TestACutAnywhereLosesOnlyWhatWasCut(t *testing.T) {
	dir := t.TempDir()
	say(t, options(dir, 1), "a", "b\n☃", "c")
	data, err := os.ReadFile(segmentPath(dir, 1))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	for cut := range len(data) + 1 {
		dir := t.TempDir()
		if err := os.WriteFile(segmentPath(dir, 1), data[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		whole, left := 0, cut
		for _, l := range lines {
			if left -= len(l); l == "" || left < 0 {
				break
			}
			whole++
		}
		words := append([]string{"header", "a", "b\n☃", "c"}[:whole:whole], "restarted", "after")
		if whole == 0 {
			words = []string{"header", "after"}
		}
		d := open(t, options(dir, 1))
		if err := d.Append(textRecord("after")); err != nil {
			t.Fatalf("cut at %d: appending: %v", cut, err)
		}
		if got, want := story(t, d), strings.Join(words, " "); got != want {
			t.Fatalf("cut at %d: got %q, want %q", cut, got, want)
		}
		_ = d.Close()
	}
}

func TestWhatAReplacedAttemptWritesLateIsIgnored(t *testing.T) {
	dir := t.TempDir()
	say(t, options(dir, 1), "a")
	early, err := os.ReadFile(segmentPath(dir, 1))
	if err != nil {
		t.Fatal(err)
	}
	say(t, options(dir, 2), "b")
	late, err := encodeLine(Record{Seq: 3, Kind: KindStep, Step: textRecord("late").Step})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(segmentPath(dir, 1), append(early, late...), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := story(t, open(t, options(dir, 3))), "header a header b header"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// An attempt that was replaced may also write its whole segment late.
func TestTheLateSegmentOfAReplacedAttemptIsIgnored(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	say(t, options(dir, 1), "a")
	if err := os.CopyFS(other, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	say(t, options(other, 2), "late")
	say(t, options(dir, 3), "c")
	late, err := os.ReadFile(segmentPath(other, 2))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(segmentPath(dir, 2), late, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := story(t, open(t, options(dir, 4))), "header a header c header"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A file that only looks like a part of the journal is none.
func TestOtherFilesBesideTheJournalAreNotRead(t *testing.T) {
	dir := t.TempDir()
	say(t, options(dir, 1), "a")
	for _, name := range []string{"journal-1.jsonl", "journal-0002.jsonl.bak", "journal-2.jsonl", "journal-.jsonl", "other.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("no record\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := story(t, open(t, options(dir, 2))), "header a header"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAFullDiskReleasesTheReserveOnce(t *testing.T) {
	o := options(t.TempDir(), 1)
	o.Durable = true
	var d *Dir
	var healthy *os.File
	warned := 0
	o.LowSpace = func() { warned++; d.file = healthy }
	d = open(t, o)
	if _, err := os.Stat(reservePath(o.Dir)); err != nil {
		t.Skipf("no reserve on this file system: %v", err)
	}
	healthy = d.file
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no /dev/full: %v", err)
	}
	defer full.Close()

	d.file = full
	if err := d.Append(textRecord("a")); err != nil || warned != 1 {
		t.Fatalf("first time: %v, warned %d times", err, warned)
	}
	d.file = full
	err = d.Append(textRecord("b"))
	var fullErr *FullError
	if !errors.As(err, &fullErr) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("second time: %v, want a *FullError", err)
	}
	d.file = healthy
	if again := d.Append(textRecord("c")); again == nil {
		t.Error("a journal that failed once took another record")
	}
	if got, want := story(t, d), "header a"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestALineLongerThanTheBuffer(t *testing.T) {
	o := options(t.TempDir(), 1)
	long, longer := strings.Repeat("x", 2*lineBuffer), strings.Repeat("y", 3*lineBuffer)
	say(t, o, long, longer, "b")
	if got, want := story(t, open(t, o)), "header "+long+" "+longer+" b restarted"; got != want {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
}

func TestMemoryIsALog(t *testing.T) {
	var m Memory
	for _, text := range []string{"a", "b"} {
		if err := m.Append(textRecord(text)); err != nil {
			t.Fatal(err)
		}
	}
	if got := story(t, &m); got != "a b" {
		t.Errorf("got %q", got)
	}
}

// Whatever bytes a journal holds, reading never fails in a way that is not an
// error, and what it returns is numbered without a gap.
func FuzzRead(f *testing.F) {
	dir := f.TempDir()
	d, err := Open(options(dir, 1))
	if err != nil {
		f.Fatal(err)
	}
	_ = d.Append(textRecord("a"))
	_ = d.Close()
	data, _ := os.ReadFile(segmentPath(dir, 1))
	f.Add(data)
	f.Add(data[:len(data)-3])
	f.Add([]byte("{\"crc\":\"00000000\",\"record\":{}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "journal-0001.jsonl"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := Open(options(dir, 2))
		if err != nil {
			return
		}
		defer d.Close()
		seq := int64(0)
		for r, err := range d.Read() {
			if err != nil {
				return
			}
			if seq++; r.Seq != seq {
				t.Fatalf("record %d where %d is due", r.Seq, seq)
			}
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	d, err := Open(options(b.TempDir(), 1))
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	r := textRecord(strings.Repeat("x", 1000))
	for b.Loop() {
		if err := d.Append(r); err != nil {
			b.Fatal(err)
		}
	}
}
