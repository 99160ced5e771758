// Package frametest writes Amazon's event stream encoding, for tests of its reader and for the
// server of package modeltest. It imports nothing of this repository, and shares no code with the
// reader.
package frametest

import (
	"encoding/binary"
	"hash/crc32"
)

// ContentType is the content type of a stream of frames.
const ContentType = "application/vnd.amazon.eventstream"

// New returns a frame with a payload, and with headers as names and values.
func New(payload []byte, headers ...string) []byte {
	var raw []byte
	for i := 0; i+1 < len(headers); i += 2 {
		name, value := headers[i], headers[i+1]
		raw = append(append(raw, byte(len(name))), name...)
		raw = append(raw, 7) // a text
		raw = binary.BigEndian.AppendUint16(raw, uint16(len(value)))
		raw = append(raw, value...)
	}
	return Raw(raw, payload)
}

// Raw returns a frame with headers that are encoded.
func Raw(headers, payload []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(12+len(headers)+len(payload)+4))
	out = binary.BigEndian.AppendUint32(out, uint32(len(headers)))
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
	out = append(append(out, headers...), payload...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
}

// Event returns a frame with an event.
func Event(kind string, payload []byte) []byte {
	return New(payload, ":event-type", kind, ":content-type", "application/json", ":message-type", "event")
}

// Exception returns a frame with an exception.
func Exception(kind string, payload []byte) []byte {
	return New(payload, ":exception-type", kind, ":content-type", "application/json", ":message-type", "exception")
}
