package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/step"
)

func TestFilesAreForTheRunnerAlone(t *testing.T) {
	o := options(filepath.Join(t.TempDir(), "state", "journal"), 1)
	o.Durable = true
	say(t, o, "a")
	for name, want := range map[string]fs.FileMode{".": 0o700, "lock": 0o600, "reserve": 0o600, "journal-0001.jsonl": 0o600} {
		info, err := os.Stat(filepath.Join(o.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want { // a directory may have setgid from above
			t.Errorf("%s has the mode %s, want %s", name, got, want)
		}
		if name == "reserve" && info.Size() != 32<<20 {
			t.Errorf("%d bytes are held back", info.Size())
		}
	}
}

func TestOnlyAReserveThatIsThereOrAFullDiskIsNoError(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		if err := reserveSpace(dir); err != nil {
			t.Error(err)
		}
	}
	if err := reserveSpace(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without its directory: %v", err)
	}
}

// A directory that cannot be used is an error that says which, and no file stays open.
func TestADirectoryThatCannotBeUsed(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(t *testing.T, dir string)
		want  string
	}{
		"a file in place of it": {func(t *testing.T, dir string) {
			t.Helper()
			write(t, dir, "")
		}, "making the state directory"},
		"a directory in place of the lock": {func(t *testing.T, dir string) {
			t.Helper()
			makeDir(t, filepath.Join(dir, "lock"))
		}, "opening the lock of the state directory"},
		"a directory in place of a segment": {func(t *testing.T, dir string) {
			t.Helper()
			makeDir(t, filepath.Join(dir, "journal-0001.jsonl"))
		}, "reading the journal journal-0001.jsonl"},
		"a segment that cannot be opened": {func(t *testing.T, dir string) {
			t.Helper()
			makeDir(t, dir)
			if err := os.Symlink(filepath.Join(dir, "missing", "x"), filepath.Join(dir, "journal-0001.jsonl")); err != nil {
				t.Fatal(err)
			}
		}, "opening the journal"},
		"a segment of a newer format": {func(t *testing.T, dir string) {
			t.Helper()
			makeDir(t, dir)
			write(t, filepath.Join(dir, "journal-0001.jsonl"), lineOf(t, Record{Seq: 1, Kind: KindHeader, Header: &Header{Version: FormatVersion + 1, RunUID: "uid-1", Attempt: 1}}))
		}, "has format 3; this runner reads up to 2"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(tempDir(t), "state")
			tc.spoil(t, dir)
			d, err := Open(options(dir, 1))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Open() = %v, %v; want %q", d, err, tc.want)
			}
			wantNoneOpen(t, dir)
		})
	}
}

// tempDir returns a directory without links in its name, as the names of open files are.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// wantNoneOpen checks that no file in a directory is open.
func wantNoneOpen(t *testing.T, dir string) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range open {
		if to, _ := os.Readlink("/proc/self/fd/" + f.Name()); strings.HasPrefix(to, dir) {
			t.Errorf("%s is still open", to)
		}
	}
}

func TestADirectoryThatIsMissing(t *testing.T) {
	if err := syncDir(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("syncDir() of what is missing = %v", err)
	}
	if _, err := segments(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("segments() of what is missing = %v", err)
	}
}

func TestClosingGivesAllFilesFree(t *testing.T) {
	d := open(t, options(t.TempDir(), 1))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.file.WriteString("x"); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("its file is open: %v", err)
	}
}

func TestTheTimeOfARecord(t *testing.T) {
	o := options(t.TempDir(), 1)
	o.Now = func() time.Time { return noon.In(time.FixedZone("", 3600)) }
	d := open(t, o)
	own := textRecord("b")
	own.At = noon.Add(-time.Hour)
	for _, r := range []Record{textRecord("a"), own} {
		if err := d.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for r, err := range d.Read() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.At.Format(time.RFC3339))
	}
	if want := "2026-03-01T12:00:00Z 2026-03-01T12:00:00Z 2026-03-01T11:00:00Z"; strings.Join(got, " ") != want {
		t.Errorf("the times are %s, want %s", got, want)
	}
}

func TestRestartsOfAnAttemptAreCounted(t *testing.T) {
	o := options(t.TempDir(), 1)
	for want := range 3 {
		d := open(t, o)
		if err := d.Append(Record{Kind: KindMark, Mark: &Mark{Type: MarkEnded}}); err != nil {
			t.Fatal(err)
		}
		if d.Restarts() != want {
			t.Errorf("%d restarts, want %d", d.Restarts(), want)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if d := open(t, options(o.Dir, 2)); d.Restarts() != 0 {
		t.Errorf("%d restarts of a new attempt", d.Restarts())
	}
}

// A record that cannot be written leaves the journal as it is; a file that cannot be written ends it.
func TestWhatCannotBeAppended(t *testing.T) {
	d := open(t, options(t.TempDir(), 1))
	if err := d.Append(Record{Kind: KindResult, Ending: &Ending{Output: json.RawMessage("{")}}); err == nil || !strings.Contains(err.Error(), "encoding a journal record") {
		t.Errorf("what is no JSON: %v", err)
	}
	if err := d.Append(textRecord("a")); err != nil {
		t.Errorf("after it: %v", err)
	}
	if got := story(t, d); got != "header a" {
		t.Errorf("got %q", got)
	}
	if err := d.Append(textRecord("b")); err != nil {
		t.Errorf("after Read: %v", err)
	}
	_ = d.file.Close()
	var full *FullError
	err := d.Append(textRecord("c"))
	if err == nil || errors.As(err, &full) || !strings.Contains(err.Error(), "appending to the journal") {
		t.Errorf("a file that is closed: %v", err)
	}
	if again := d.Append(textRecord("d")); !errors.Is(again, err) {
		t.Errorf("the next record: %v", again)
	}
}

func TestAFullDiskOfARunnerThatDoesNotListen(t *testing.T) {
	o := options(t.TempDir(), 1)
	o.Durable = true
	d := open(t, o)
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no /dev/full: %v", err)
	}
	defer full.Close()
	d.file = full
	var fullErr *FullError
	if err := d.Append(textRecord("a")); !errors.As(err, &fullErr) {
		t.Errorf("Append() = %v", err)
	}
}

// Damage is told with its file and line, whether it is found when the journal is opened or read.
func TestDamageIsLocated(t *testing.T) {
	header := lineOf(t, Record{Seq: 1, Kind: KindHeader, Header: &Header{Version: FormatVersion, RunUID: "uid-1", Attempt: 1}})
	second, third := textRecord("a"), textRecord("b")
	second.Seq, third.Seq = 2, 3
	good, last := lineOf(t, second), lineOf(t, third)
	gap := third
	gap.Seq = 9
	large := strings.Repeat("x", maxInspected)
	for name, tc := range map[string]struct {
		lines []string
		want  string
	}{
		"a line that is none":         {[]string{header, good, "x\n", last}, "line 3: not a line of a journal"},
		"a checksum":                  {[]string{header, strings.Replace(good, `"a"`, `"x"`, 1), last}, "line 2: its checksum is wrong"},
		"a record that is no JSON":    {[]string{header, good, framed("{"), last}, "line 3: unexpected end of JSON input"},
		"a large one that is no JSON": {[]string{header, good, framed(`{"seq":3,"x":"` + large), last}, "line 3: jsontext: unexpected EOF within \"/x\" after offset 270"},
		"no header":                   {[]string{good, last}, "line 1: no header"},
		"a header of another place":   {[]string{lineOf(t, Record{Seq: 3, Kind: KindHeader, Header: &Header{After: 1}}), last}, "line 1: the header is record 3 and follows record 1"},
		"a record that is missing":    {[]string{header, good, lineOf(t, gap), lineOf(t, gap)}, "line 3: record 9 where 3 is due"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "journal-0001.jsonl"), strings.Join(tc.lines, ""))
			d, err := Open(options(dir, 2))
			if err == nil {
				t.Cleanup(func() { _ = d.Close() })
				for _, err = range d.Read() {
					if err != nil {
						break
					}
				}
			}
			var corrupt *CorruptError
			if want := "the journal is damaged at journal-0001.jsonl " + tc.want; !errors.As(err, &corrupt) || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

func TestDamageOfAnOpenJournalEndsReading(t *testing.T) {
	o := options(t.TempDir(), 1)
	say(t, o, "a", "b")
	d := open(t, options(o.Dir, 2))
	path := filepath.Join(o.Dir, "journal-0001.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, strings.Replace(string(text), `"a"`, `"x"`, 1))
	if got, want := story(t, d), "header error: the journal is damaged at journal-0001.jsonl line 2: its checksum is wrong"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatIsALine(t *testing.T) {
	whole := framed("")
	for name, tc := range map[string]struct {
		line string
		is   bool
	}{
		"the shortest":       {whole, true},
		"one byte less":      {strings.TrimSuffix(whole, "}\n") + "\n", false},
		"nothing":            {"", false},
		"no end of the line": {whole[:len(whole)-1] + " ", false},
		"another begin":      {"[" + whole[1:], false},
		"another middle":     {strings.Replace(whole, "record", "Record", 1), false},
		"another checksum":   {strings.Replace(whole, "00000000", "00000001", 1), false},
	} {
		if body, err := verifiedRecord([]byte(tc.line)); (err == nil) != tc.is || len(body) != 0 {
			t.Errorf("%s: %q, %v", name, body, err)
		}
	}
}

// The files are read in the order of their attempts, which that of their names is not.
func TestAttemptsAreReadInTheirOrder(t *testing.T) {
	dir := t.TempDir()
	say(t, options(dir, 9999), "a")
	say(t, options(dir, 10000), "b")
	if got, want := story(t, open(t, options(dir, 10001))), "header a header b header"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMemoryNumbersItsRecords(t *testing.T) {
	var m Memory
	for range 3 {
		if err := m.Append(textRecord("a")); err != nil {
			t.Fatal(err)
		}
	}
	want := int64(0)
	for r := range m.Read() {
		if want++; r.Seq != want {
			t.Errorf("record %d, want %d", r.Seq, want)
		}
	}
}

// A step counts once, and only from a record that brings one.
func TestOnlyRecordsOfStepsBringSteps(t *testing.T) {
	var m Memory
	brings := func(kind Kind, seq int64, text string) Record {
		return Record{Kind: kind, Step: &step.Step{Seq: seq, Parts: []step.Part{{Kind: step.PartText, Text: text}}}}
	}
	for _, r := range []Record{brings(KindHide, 1, "hidden"), {Kind: KindStep}, brings(KindStep, 1, "a"), brings(KindResult, 1, "again"), brings(KindResult, 2, "b")} {
		if err := m.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for s, err := range Steps(m.Read(), "", 1) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%d:%s", s.Seq, s.Text()))
	}
	if strings.Join(got, " ") != "1:a 2:b" {
		t.Errorf("the steps are %s", got)
	}
}

// A reader that fails is an error, and not the end.
func TestAReaderThatFails(t *testing.T) {
	broken := errors.New("broken")
	for _, err := range scan("journal-0001.jsonl", io.MultiReader(strings.NewReader(framed("{}")), failing{broken})) {
		if errors.Is(err, broken) {
			return
		}
	}
	t.Error("the failure is not told")
}

// A failing reader returns an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// framed returns a body as a line.
func framed(body string) string {
	return linePrefix + checksum([]byte(body)) + lineMiddle + body + lineSuffix
}

func lineOf(t *testing.T, r Record) string {
	t.Helper()
	line, err := encodeLine(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func makeDir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
}
