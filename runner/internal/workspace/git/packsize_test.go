package git

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// packed returns a pack of objects without its checksum.
func packed(objects ...[]byte) []byte {
	head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(objects)))
	return append(head, bytes.Join(objects, nil)...)
}

// object returns an object that says to have a size.
func object(kind plumbing.ObjectType, size int64, content string) []byte {
	out := packHeader(kind, size)
	if kind == plumbing.REFDeltaObject {
		out = append(out, strings.Repeat("1", 20)...)
	}
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = z.Write([]byte(content)) // to memory
	_ = z.Close()
	return append(out, b.Bytes()...)
}

func delta(from, to uint64, rest string) []byte {
	content := string(binary.AppendUvarint(binary.AppendUvarint(nil, from), to)) + rest
	return object(plumbing.REFDeltaObject, int64(len(content)), content)
}

var errCut = errors.New("the connection is cut")

// A pack that a git server sends is refused if an object does not fit into the memory of the container
// that fetches; what did not arrive is tried again.
func TestWhichPacksAreRefused(t *testing.T) {
	small := object(plumbing.BlobObject, 5, "hello")
	sum := strings.Repeat("s", 20)
	for name, tc := range map[string]struct {
		pack   []byte
		end    error // after the pack; nil: its end
		parsed error // what the reader of the pack says of it
		want   string
		again  bool
	}{
		"a small object":                  {packed(small), nil, nil, "", false},
		"an object of just the bound":     {packed(object(plumbing.BlobObject, maxObject, "a"), small), nil, nil, "", false},
		"an object of a byte more":        {packed(small, object(plumbing.BlobObject, maxObject+1, "a"), small), nil, nil, "an object of 104857601 bytes in its history, and at most 100 MiB", false},
		"a delta":                         {packed(small, delta(5, 5, "x")), nil, nil, "", false},
		"a delta that makes more":         {packed(small, delta(5, 300<<20, "x")), nil, nil, "an object of 314572800 bytes in its history", false},
		"a delta that makes 2 to the 63":  {packed(small, delta(5, 1<<63, "x")), nil, nil, "bytes in its history", false},
		"a delta without sizes":           {packed(object(plumbing.REFDeltaObject, 0, "")), nil, nil, "", false},
		"an object with too much content": {packed(object(plumbing.BlobObject, 1, "hello")), nil, errCut, "a pack that cannot be read", false},
		"no pack":                         {[]byte("<html>"), nil, errCut, "a pack that cannot be read", false},
		"bytes that are no object":        {packed([]byte("\x35hello, this is not compressed")), nil, errCut, "a pack that cannot be read", false},
		"the connection is cut":           {packed(small)[:15], errCut, errCut, errCut.Error(), true},
		"the server ends in the middle":   {packed(small, small)[:25], io.EOF, errCut, io.ErrUnexpectedEOF.Error(), true},
		"the volume is full":              {packed(small), nil, Refused("The volume is full."), "The volume is full.", false},
	} {
		t.Run(name, func(t *testing.T) {
			from := io.MultiReader(bytes.NewReader(tc.pack), strings.NewReader(sum))
			if tc.end != nil {
				from = io.MultiReader(bytes.NewReader(tc.pack), failingReader{tc.end})
			}
			p := newPackReader(from)
			got, err := io.ReadAll(p)
			if err == nil {
				err = tc.parsed
			}
			err = p.close(err)
			_, refused := errors.AsType[*RefusedError](err)
			if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || refused == tc.again) {
				t.Errorf("%v, want %q", err, tc.want)
			}
			if err == nil && string(got) != string(tc.pack)+sum {
				t.Errorf("%d bytes are handed on of %d", len(got), len(tc.pack)+len(sum))
			}
		})
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }
