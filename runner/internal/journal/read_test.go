package journal

import (
	"bytes"
	"fmt"
	"os"
	"testing"
)

// segmentOf makes the file of an attempt: each line is a record with the right
// checksum, so that what is in it is read, or, behind a '!', what it is.
func segmentOf(script []byte) []byte {
	var out []byte
	for line := range bytes.Lines(script) {
		if raw, ok := bytes.CutPrefix(line, []byte("!")); ok {
			out = append(out, raw...)
			continue
		}
		b := bytes.TrimSuffix(line, []byte("\n"))
		out = fmt.Appendf(out, "%s%s%s%s%s", linePrefix, checksum(b), lineMiddle, b, lineSuffix)
	}
	return out
}

// Whatever two attempts left, a third reads records in order up to an error, or
// is told why it cannot; what it appends then is what it reads last.
func FuzzAttempts(f *testing.F) {
	header := func(attempt, seq, after int) string {
		return fmt.Sprintf(`{"seq":%d,"kind":"header","header":{"version":1,"runUID":"uid-1","attempt":%d,"after":%d}}`+"\n", seq, attempt, after)
	}
	step := func(seq int) string {
		return fmt.Sprintf(`{"seq":%d,"kind":"step","step":{"seq":%d,"role":"user","parts":[{"kind":"text","text":"a"}]}}`+"\n", seq, seq-1)
	}
	mark := `{"seq":3,"kind":"mark","mark":{"type":"restarted"}}` + "\n"
	f.Add([]byte(header(1, 1, 0)+step(2)), []byte(header(2, 3, 2)+step(4)))
	f.Add([]byte(header(1, 1, 0)+step(2)+mark+step(4)), []byte(header(2, 3, 2)))
	f.Add([]byte(header(1, 1, 0)+step(3)), []byte("!{\"crc\":"))
	f.Add([]byte(header(1, 1, 0)+step(2)+step(2)), []byte(header(2, 9, 100)))
	f.Add([]byte(header(1, 1, 0)+step(2)), []byte(header(2, -1, -7)+"!garbage\n"+step(0)))
	f.Add([]byte("!"), []byte(header(2, 1<<62, 0)+step(5)))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		dir := t.TempDir()
		for attempt, script := range [][]byte{one, two} {
			if err := os.WriteFile(segmentPath(dir, attempt+1), segmentOf(script), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		d, err := Open(options(dir, 3))
		if err != nil {
			return
		}
		defer d.Close()
		if err := d.Append(textRecord("after")); err != nil {
			t.Fatalf("Append: %v", err)
		}
		seq, last := int64(0), Record{}
		for r, err := range d.Read() {
			if err != nil {
				return
			}
			if seq++; r.Seq != seq {
				t.Fatalf("record %d where %d is due", r.Seq, seq)
			}
			last = r
		}
		if last.Step == nil || last.Step.Text() != "after" {
			t.Fatalf("the last record is %+v", last)
		}
	})
}
