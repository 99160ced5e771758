package output

import (
	"context"
	"fmt"
	"io"
	"time"
)

// How much of an output is used.
const (
	Shown   = 30_000  // characters that the model reads
	Kept    = 8 << 20 // bytes that go to a file when that is not all
	Emitted = 1 << 20 // bytes that are shown to people as they come
)

// putting is how long putting the whole away may take once the call's own time
// is up: its result has to be there soon.
const putting = time.Second

// An Overflow puts a text where the file tools find it, in a file named after
// name, and returns the path that they know it by.
type Overflow func(ctx context.Context, name string, text io.Reader) (path string, err error)

// A Place is where what is too much goes. The zero value is nowhere.
type Place struct {
	// State is a directory of the runner's own, for what is on its way; empty:
	// the one for temporary files.
	State string
	// Calls keep the end of an output for after a crash; nil: nobody does.
	Calls *Calls
	// Overflow takes the whole of an output that is cut; nil: it is lost.
	Overflow Overflow
}

// A Record is the output of one call. It is not for several goroutines.
type Record struct {
	place   Place
	call    string
	emit    func(string)
	emitted int

	cleaner Cleaner
	clip    *Clip
	whole   whole
	capture *capture
}

// Record begins the output of a call, and shows it with emit as it comes.
func (p Place) Record(call string, emit func(string)) *Record {
	return &Record{
		place: p, call: call, emit: emit,
		clip: NewClip(Shown), whole: whole{dir: p.State, most: Kept}, capture: p.Calls.begin(call),
	}
}

// Write adds what was printed.
func (r *Record) Write(p []byte) {
	r.capture.write(p)
	r.add(r.cleaner.Write(p))
}

func (r *Record) add(text []byte) {
	if len(text) == 0 {
		return
	}
	r.clip.Write(text)
	r.whole.write(text)
	room := Emitted - r.emitted
	switch r.emitted += len(text); {
	case room <= 0:
	case len(text) > room:
		r.emit("\n[There is more output; it is not shown here.]\n")
	default:
		r.emit(string(text))
	}
}

// Text is what the model reads of the output: all of it, or its ends and where
// the whole is.
func (r *Record) Text(ctx context.Context) string {
	r.add(r.cleaner.Flush())
	head, tail := r.clip.Ends()
	cut := r.clip.Cut()
	if cut == 0 {
		return head + tail
	}
	return fmt.Sprintf("%s\n\n[%d characters are cut out here. %s]\n\n%s", head, cut, r.put(ctx), tail)
}

// put puts the whole away and says where it is.
func (r *Record) put(ctx context.Context) string {
	const lost = "The whole was not kept"
	if r.place.Overflow == nil {
		return lost + "; write it to a file to read it in parts."
	}
	text, err := r.whole.reader()
	if err != nil {
		return fmt.Sprintf("%s: %v.", lost, err)
	}
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), putting)
		defer cancel()
	}
	path, err := r.place.Overflow(ctx, r.call, text)
	switch {
	case err != nil:
		return fmt.Sprintf("%s: %v.", lost, err)
	case r.whole.dropped > 0:
		return fmt.Sprintf("The first %d MiB are in %s; the %d bytes after them were not kept. Look for what you need in it with Grep.",
			r.whole.kept>>20, path, r.whole.dropped)
	}
	return fmt.Sprintf("The whole is in %s: look for what you need in it with Grep, or Read it in parts.", path)
}

// Close frees what the record took. What the capture has stays for a while: the
// call has no result yet.
func (r *Record) Close() {
	r.whole.close()
	r.capture.close()
}
