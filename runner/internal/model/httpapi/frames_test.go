package httpapi

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/frametest"
)

// Frames of others, byte for byte: what our own encoder and reader agree on may be wrong in both.
var foreign = map[string]struct{ hex, data string }{
	// https://github.com/aws/aws-sdk-go-v2/blob/09901849241c46c879f238043a81aa6244ef70aa/aws/protocol/eventstream/decode_test.go
	"of the SDK of Amazon for Go": {
		"0000003d0000002007fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d8d9c08b1",
		`{'foo':'bar'}`,
	},
	// https://hex.pm/packages/event_stream/0.1.0/files/lib/event_stream.ex
	"of a library for Elixir": {
		"0000003e00000020405df9460c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b22666f6f223a2022626172227d6fa2bf3b",
		`{"foo": "bar"}`,
	},
	"of the same library, without headers": {
		"0000001e00000000baf2f68a7b22666f6f223a2022626172227dae7258e4",
		`{"foo": "bar"}`,
	},
}

func TestFramesOfOthers(t *testing.T) {
	for name, tc := range foreign {
		t.Run(name, func(t *testing.T) {
			raw, err := hex.DecodeString(tc.hex)
			if err != nil {
				t.Fatal(err)
			}
			got, err := readFrames(t, bytes.NewReader(append(raw, raw...)))
			if diff := cmp.Diff([]string{":" + tc.data, ":" + tc.data}, got); diff != "" || !errors.Is(err, ErrEnd) {
				t.Errorf("error %v, -want +got:\n%s", err, diff)
			}
			for i := range raw {
				broken := bytes.Clone(raw)
				broken[i] ^= 1
				if got, err := readFrames(t, bytes.NewReader(broken)); got != nil || errors.Is(err, ErrEnd) {
					t.Errorf("with another bit in byte %d: %q, %v", i, got, err)
				}
			}
		})
	}
}

// readFrames returns all events as name, colon, data, and why there is no more.
func readFrames(t *testing.T, in io.Reader) (got []string, err error) {
	t.Helper()
	f := &frames{in: bufio.NewReader(iotest.OneByteReader(in)), tooLong: errTooLong}
	event, err := f.Next()
	for ; err == nil; event, err = f.Next() {
		got = append(got, string(event.Name)+":"+string(event.Data))
	}
	if _, again := f.Next(); !errors.Is(again, err) {
		t.Errorf("first %v, then %v", err, again)
	}
	return got, err
}

var errTooLong = errors.New("too long")

func TestFrames(t *testing.T) {
	chunk := string(frametest.Event("chunk", []byte(`{"a":1}`)))
	broken := errors.New("connection reset")
	cases := map[string]struct {
		stream string
		want   []string
		err    error
	}{
		"nothing":                       {"", nil, ErrEnd},
		"two events":                    {chunk + chunk, []string{`chunk:{"a":1}`, `chunk:{"a":1}`}, ErrEnd},
		"an exception":                  {string(frametest.Exception("throttlingException", []byte(`{"message":"no"}`))), []string{`error:{"error":{"message":"no"},"type":"throttlingException"}`}, ErrEnd},
		"an exception in plain text":    {string(frametest.Exception("x", []byte(`no`))), []string{`error:{"error":"no","type":"x"}`}, ErrEnd},
		"an exception without a word":   {string(frametest.Exception("x", nil)), []string{`error:{"error":"","type":"x"}`}, ErrEnd},
		"an error":                      {string(frametest.New(nil, ":message-type", "error", ":error-code", "Internal", ":error-message", "no")), []string{`error:{"error":"no","type":"Internal"}`}, ErrEnd},
		"a frame without anything":      {string(frametest.New(nil)), []string{":"}, ErrEnd},
		"headers of all types":          {withHeaders(everyHeader), []string{"chunk:"}, ErrEnd},
		"a header of another type":      {withHeaders("\x01a\x0a"), nil, errors.New(`the header "a" of a frame is broken`)},
		"a header without a type":       {withHeaders("\x01a"), nil, errors.New(`the header "a" of a frame is broken`)},
		"a header without a size":       {withHeaders("\x01a\x07\x00"), nil, errors.New(`the header "a" of a frame is broken`)},
		"a header without all of it":    {withHeaders("\x01a\x07\x00\x03no"), nil, errors.New(`the header "a" of a frame is broken`)},
		"a header that is only a name":  {withHeaders("\x09a"), nil, errors.New(`the header "a" of a frame is broken`)},
		"the end within the prelude":    {chunk + chunk[:5], []string{`chunk:{"a":1}`}, io.ErrUnexpectedEOF},
		"the end within the headers":    {chunk + chunk[:15], []string{`chunk:{"a":1}`}, io.ErrUnexpectedEOF},
		"the end before the checksum":   {chunk[:len(chunk)-4], nil, io.ErrUnexpectedEOF},
		"the end after the prelude":     {chunk[:12], nil, io.ErrUnexpectedEOF},
		"a break":                       {chunk + chunk[:30] + "<broken>", []string{`chunk:{"a":1}`}, broken},
		"a frame shorter than a frame":  {prelude(15, 0), nil, errFrame},
		"headers longer than the frame": {prelude(20, 5), nil, errFrame},
		"a frame that is too long":      {prelude(maxLine+1, 0), nil, errTooLong},
		"a length that was damaged":     {"\xff" + chunk[1:], nil, errChecksum},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var in io.Reader = strings.NewReader(tc.stream)
			if before, _, breaks := strings.Cut(tc.stream, "<broken>"); breaks {
				in = io.MultiReader(strings.NewReader(before), iotest.ErrReader(broken))
			}
			got, err := readFrames(t, in)
			if diff := cmp.Diff(tc.want, got); diff != "" || !errors.Is(err, tc.err) && err.Error() != tc.err.Error() {
				t.Errorf("error %v, want %v; -want +got:\n%s", err, tc.err, diff)
			}
		})
	}
}

// everyHeader has a header of each type, and the name of an event last.
const everyHeader = "\x01a\x00" + "\x01b\x01" + "\x01c\x02." + "\x01d\x03.." + "\x01e\x04...." + "\x01f\x05........" +
	"\x01g\x06\x00\x02.." + "\x01h\x08........" + "\x01i\x09................" + "\x0b:event-type\x07\x00\x05chunk"

// withHeaders returns a frame without a payload.
func withHeaders(headers string) string { return string(frametest.Raw([]byte(headers), nil)) }

// prelude returns the beginning of a frame.
func prelude(size, headers uint32) string {
	out := binary.BigEndian.AppendUint32(nil, size)
	out = binary.BigEndian.AppendUint32(out, headers)
	return string(binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out)))
}

// The longest frame is read, and its memory is used again.
func TestALongFrame(t *testing.T) {
	data := bytes.Repeat([]byte("a"), maxLine-len(frametest.Event("chunk", nil)))
	long := frametest.Event("chunk", data)
	f := &frames{in: bufio.NewReader(bytes.NewReader(append(long, frametest.Event("chunk", []byte("b"))...)))}
	for _, want := range []int{len(data), 1} {
		event, err := f.Next()
		if err != nil || len(event.Data) != want {
			t.Fatalf("%d bytes, %v", len(event.Data), err)
		}
	}
}

// FuzzFrames holds the reader to what it promises of any bytes: it ends, it takes no more memory
// than a frame may have, and an event has the bytes of a frame whose checksums are right.
func FuzzFrames(f *testing.F) {
	f.Add(frametest.Event("chunk", []byte(`{"a":1}`)))
	f.Add(frametest.Exception("x", []byte(`no`)))
	f.Add([]byte(prelude(maxLine, 0)))
	f.Add([]byte(withHeaders(everyHeader)))
	f.Fuzz(func(t *testing.T, data []byte) {
		reader := &frames{in: bufio.NewReader(bytes.NewReader(data)), tooLong: errTooLong}
		read := 0
		for {
			_, err := reader.Next()
			if err != nil {
				if errors.Is(err, ErrEnd) && read != len(data) {
					t.Fatalf("the end after %d of %d bytes", read, len(data))
				}
				return
			}
			read += len(reader.frame)
			if cap(reader.frame) > 2*maxLine || read > len(data) {
				t.Fatalf("%d bytes of memory, %d of %d bytes", cap(reader.frame), read, len(data))
			}
		}
	})
}
