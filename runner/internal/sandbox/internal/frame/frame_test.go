package frame

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	for name, tc := range map[string]struct {
		said string
		want Frame
		err  error
	}{
		"a frame":                        {"o\x00\x00\x00\x02hi", Frame{Stdout, []byte("hi")}, nil},
		"an empty frame":                 {"k\x00\x00\x00\x00", Frame{Kill, []byte{}}, nil},
		"nothing":                        {"", Frame{}, io.EOF},
		"a frame that ends early":        {"o\x00\x00\x00\x02h", Frame{}, io.ErrUnexpectedEOF},
		"a header that ends early":       {"o\x00", Frame{}, io.ErrUnexpectedEOF},
		"a frame without what it claims": {"o\x00\x00\x00\x02", Frame{}, io.ErrUnexpectedEOF},
		"a frame of no kind":             {"!\x00\x00\x00\x00", Frame{}, ErrProtocol},
		"a frame that is too large":      {"o\x00\x01\x00\x00", Frame{}, ErrProtocol},
		"a frame that is far too large":  {"o\xff\xff\xff\xff", Frame{}, ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(strings.NewReader(tc.said), &Buffer{})
			if diff := cmp.Diff(tc.want, got); diff != "" || !errors.Is(err, tc.err) {
				t.Errorf("error %v, want %v; -want +got:\n%s", err, tc.err, diff)
			}
		})
	}
}

// ends are both ends of a connection.
func ends(t *testing.T) (*Conn, *Conn) {
	t.Helper()
	a, b := net.Pipe()
	t.Cleanup(func() { a.Close(); b.Close() })
	return New(a), New(b)
}

func TestMessages(t *testing.T) {
	for name, size := range map[string]int{"small": 3, "of a frame": Max - 2, "of more frames": 3*Max + 7, "large": maxMessage - 2} {
		t.Run(name, func(t *testing.T) {
			a, b := ends(t)
			want := strings.Repeat("x", size)
			go a.SendMessage(Start, want)
			first, err := b.Expect(Start)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			if err := b.Message(first, &got); err != nil || got != want {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
	t.Run("too large to send", func(t *testing.T) {
		a, _ := ends(t)
		if err := a.SendMessage(Start, strings.Repeat("x", maxMessage)); err == nil {
			t.Error("it was sent")
		}
		if err := a.Send(Stdin, make([]byte, Max+1)); err == nil {
			t.Error("a frame too large was sent")
		}
	})
}

func TestMessagesThatMakeNoSense(t *testing.T) {
	for name, say := range map[string]func(a *Conn){
		"without end": func(a *Conn) {
			for err := error(nil); err == nil; {
				err = a.Send(Exit, bytes.Repeat([]byte("x"), Max))
			}
		},
		"of two kinds":   func(a *Conn) { a.Send(Exit, []byte("{")); a.Send(Start, []byte("}")) },
		"that are empty": func(a *Conn) { a.Send(Exit, nil) },
		"that are no JSON": func(a *Conn) {
			a.Send(Exit, []byte("{"))
			a.Send(Exit, nil)
		},
		"of another shape": func(a *Conn) {
			a.Send(Exit, []byte(`"x"`))
			a.Send(Exit, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := ends(t)
			go say(a)
			first, err := b.Expect(Exit)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Message(first, &struct{ Code int }{}); !errors.Is(err, ErrProtocol) {
				t.Errorf("%v", err)
			}
			b.Close()
		})
	}
}

func TestCredit(t *testing.T) {
	for name, tc := range map[string]struct {
		data []byte
		want int
		err  error
	}{
		"some":     {[]byte{0, 0, 1, 2}, 258, nil},
		"too much": {[]byte{0xff, 0, 0, 0}, 0, ErrProtocol},
		"short":    {[]byte{1}, 0, ErrProtocol},
	} {
		if got, err := ReadCredit(Frame{Credit, tc.data}); got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
}

// Whatever comes, a reader neither fails in another way than by an error nor
// holds more than a frame, and what it takes for a frame is one.
func FuzzRead(f *testing.F) {
	f.Add([]byte("o\x00\x00\x00\x02hix\x00\x00\x00\x00"))
	f.Add([]byte("o\x00\x01\x00\x00"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, said []byte) {
		r, b := bytes.NewReader(said), &Buffer{}
		for {
			before := r.Len()
			got, err := Read(r, b)
			if err != nil {
				return
			}
			taken := said[len(said)-before : len(said)-r.Len()]
			if again := encode(&Buffer{}, got.Kind, got.Data); !bytes.Equal(again, taken) {
				t.Fatalf("%x was read from %x", again, taken)
			}
		}
	})
}
