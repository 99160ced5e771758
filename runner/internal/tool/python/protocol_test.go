package python

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// framed are answers as an interpreter writes them.
func framed(answers ...answer) []byte {
	var all []byte
	for _, a := range answers {
		data, _ := json.Marshal(map[string]any{"id": a.ID, "how": a.How, "note": a.Note})
		all = append(binary.BigEndian.AppendUint32(all, uint32(len(data))), data...)
	}
	return all
}

func TestDecoderRefuses(t *testing.T) {
	cases := map[string][]byte{
		"a huge length":       {0xff, 0xff, 0xff, 0xff},
		"no JSON":             {0, 0, 0, 1, 'x'},
		"JSON that is none":   append([]byte{0, 0, 0, 2}, "[]"...),
		"an answer of no use": framed(answer{ID: 1, How: "fine"}),
	}
	for name, data := range cases {
		var d decoder
		if got, err := d.write(data); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Whatever comes, in whatever pieces, it is read alike, and memory is bounded.
func FuzzDecoder(f *testing.F) {
	f.Add(framed(answer{1, howDone, ""}, answer{2, howFailed, "x"}), uint8(1))
	f.Add([]byte{0, 1, 0, 1, '{'}, uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		var whole, pieces decoder
		want, wantErr := whole.write(data)
		var got []answer
		var gotErr error
		for chunk := range slices.Chunk(data, max(int(size), 1)) {
			var some []answer
			if some, gotErr = pieces.write(chunk); gotErr != nil {
				break
			}
			got = append(got, some...)
			if len(pieces.data) > maxAnswer+4+int(size) {
				t.Fatalf("%d bytes are held", len(pieces.data))
			}
		}
		if (wantErr == nil) != (gotErr == nil) || wantErr == nil && !cmp.Equal(want, got) {
			t.Fatalf("at once %v, %v; in pieces %v, %v", want, wantErr, got, gotErr)
		}
	})
}

// The mark is found wherever pieces end, once, and nothing else is lost.
func FuzzSplitter(f *testing.F) {
	f.Add([]byte("before"), []byte("after"), uint8(1))
	f.Add([]byte("\x00MAR\x00MARK"), []byte("\x00MARK\x00"), uint8(3))
	f.Fuzz(func(t *testing.T, before, after []byte, size uint8) {
		mark := []byte("\x00MARK\x00")
		if bytes.Contains(before, mark) || bytes.Index(slices.Concat(before, mark), mark) != len(before) {
			return
		}
		s := splitter{mark: mark}
		var got, rest []byte
		marks := 0
		for chunk := range slices.Chunk(slices.Concat(before, mark, after), max(int(size), 1)) {
			seen := marks > 0
			b, a, found := s.write(chunk)
			if found {
				marks++
			}
			if seen {
				rest = append(rest, b...)
			} else {
				got = append(got, b...)
			}
			rest = append(rest, a...)
			if len(s.held) >= len(mark) {
				t.Fatalf("%d bytes are held", len(s.held))
			}
		}
		if marks != 1 || !bytes.Equal(got, before) || !bytes.Equal(rest, after) {
			t.Fatalf("%d marks, %q, %q", marks, got, rest)
		}
	})
}
