package httpapi

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
)

// ContentFrames is the content type of Amazon's event streams.
const ContentFrames = "application/vnd.amazon.eventstream"

// The parts of a frame that are not its headers or its payload, in bytes.
const (
	preludeSize  = 12 // the length of the frame, that of its headers, and the checksum of both
	checksumSize = 4  // of all bytes before it
)

var (
	errChecksum = errors.New("the checksum of a frame is wrong")
	errFrame    = errors.New("the lengths in a frame contradict each other")
)

// frames reads a stream of frames of Amazon's event stream encoding. Each frame has two
// checksums: the first is checked before memory for the frame is taken.
//
//	length of the frame | length of the headers | checksum | headers | payload | checksum
//
// https://docs.aws.amazon.com/lexv2/latest/dg/event-stream-encoding.html
type frames struct {
	in      *bufio.Reader
	frame   []byte // the last one, whose memory is used again
	tooLong error
	err     error // why nothing more comes
}

// Next returns the event in the next frame, or an error; ErrEnd: the stream has ended.
func (f *frames) Next() (Event, error) {
	if f.err != nil {
		return Event{}, f.err
	}
	var event Event
	if event, f.err = f.read(); f.err != nil {
		return Event{}, f.err
	}
	return event, nil
}

func (f *frames) read() (Event, error) {
	f.frame = slices.Grow(f.frame[:0], preludeSize)[:preludeSize]
	if _, err := io.ReadFull(f.in, f.frame); errors.Is(err, io.EOF) {
		return Event{}, ErrEnd
	} else if err != nil {
		return Event{}, err
	}
	size, headers := binary.BigEndian.Uint32(f.frame), binary.BigEndian.Uint32(f.frame[4:])
	switch {
	case crc32.ChecksumIEEE(f.frame[:8]) != binary.BigEndian.Uint32(f.frame[8:]):
		return Event{}, errChecksum
	case size > maxLine:
		return Event{}, f.tooLong
	case size < preludeSize+checksumSize || headers > size-preludeSize-checksumSize:
		return Event{}, errFrame
	}
	f.frame = slices.Grow(f.frame, int(size)-preludeSize)[:size]
	if _, err := io.ReadFull(f.in, f.frame[preludeSize:]); errors.Is(err, io.EOF) {
		return Event{}, io.ErrUnexpectedEOF
	} else if err != nil {
		return Event{}, err
	}
	end := len(f.frame) - checksumSize
	if crc32.ChecksumIEEE(f.frame[:end]) != binary.BigEndian.Uint32(f.frame[end:]) {
		return Event{}, errChecksum
	}
	payload := preludeSize + int(headers)
	return event(f.frame[preludeSize:payload], f.frame[payload:end])
}

// event returns the event of a frame. An exception or an error gets the name EventError and the data format of other
// errors, because the name of an exception is in the headers.
func event(headers, payload []byte) (Event, error) {
	h, err := parseHeaders(headers)
	switch {
	case err != nil:
		return Event{}, err
	case string(h.kind) == "exception":
		return failure(h.exception, payload)
	case string(h.kind) == "error":
		return failure(h.code, h.message)
	}
	return Event{Name: h.event, Data: payload}, nil
}

// failure returns the event of an error with a name.
func failure(name, report []byte) (Event, error) {
	var inner any = string(report)
	if json.Valid(report) {
		inner = json.RawMessage(report)
	}
	data, err := json.Marshal(map[string]any{"type": string(name), "error": inner})
	return Event{Name: []byte(EventError), Data: data}, err
}

// frameHeaders are the headers of a frame that are read.
type frameHeaders struct {
	kind             []byte // of the frame: event, exception or error
	event, exception []byte // the name
	code, message    []byte // of an error
}

// headerText is the type of a header whose value is a text.
const headerText = 7

// headerSizes are the sizes of the values of headers by their types; -1: two bytes before the value
// have its size.
var headerSizes = [...]int{0, 0, 1, 2, 4, 8, -1, headerText: -1, 8, 16}

func parseHeaders(raw []byte) (h frameHeaders, err error) {
	for len(raw) > 0 {
		next, rest, ok := nextHeader(raw)
		if !ok {
			return h, fmt.Errorf("the header %q of a frame is broken", next.name)
		}
		if next.kind == headerText {
			h.set(next.name, next.value)
		}
		raw = rest
	}
	return h, nil
}

// A frameHeader is one header.
type frameHeader struct {
	name, value []byte
	kind        byte
}

// nextHeader returns the first header and the bytes behind it, or false if it is not whole.
func nextHeader(raw []byte) (h frameHeader, rest []byte, ok bool) {
	size := int(raw[0])
	if len(raw) < size+2 {
		return frameHeader{name: raw[1:]}, nil, false
	}
	h.name, h.kind, rest = raw[1:size+1], raw[size+1], raw[size+2:]
	if int(h.kind) >= len(headerSizes) {
		return h, nil, false
	}
	if size = headerSizes[h.kind]; size < 0 {
		if len(rest) < 2 {
			return h, nil, false
		}
		size, rest = int(binary.BigEndian.Uint16(rest)), rest[2:]
	}
	if len(rest) < size {
		return h, nil, false
	}
	h.value = rest[:size]
	return h, rest[size:], true
}

// set keeps the value of a header that is read.
func (h *frameHeaders) set(name, value []byte) {
	switch string(name) {
	case ":message-type":
		h.kind = value
	case ":event-type":
		h.event = value
	case ":exception-type":
		h.exception = value
	case ":error-code":
		h.code = value
	case ":error-message":
		h.message = value
	}
}
