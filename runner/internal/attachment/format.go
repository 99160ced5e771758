package attachment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// HeadBytes is how much of a file IsFile needs.
const HeadBytes = 512

const (
	// MaxBytes bounds a file: it is 5 MiB in base64, the smallest bound of the providers.
	MaxBytes = 3_932_160
	// MaxPixels bounds an image.
	MaxPixels = 40_000_000
)

// A format is a kind of file that is shown.
type format struct {
	kind      step.PartKind
	mediaType string
	// is reports whether a file begins like a file of the format.
	is func(head []byte) bool
	// pixels returns width and height; zero: the header is incomplete. Nil: the format has no pixels.
	pixels func(data []byte) (width, height int)
}

var formats = []format{
	{step.PartImage, "image/png", begins("\x89PNG\r\n\x1a\n"), pngPixels},
	{step.PartImage, "image/jpeg", begins("\xff\xd8\xff"), jpegPixels},
	{step.PartImage, "image/gif", isGIF, gifPixels},
	{step.PartImage, "image/webp", func(b []byte) bool { return begins("RIFF")(b) && at(b, 8, "WEBP") }, webpPixels},
	{step.PartDocument, "application/pdf", begins("%PDF-"), nil},
}

// otherFormats are images that no provider takes.
var otherFormats = map[string]string{
	"BM": "BMP", "II*\x00": "TIFF", "MM\x00*": "TIFF", "\x00\x00\x01\x00": "ICO", "8BPS": "Photoshop",
}

func begins(magic string) func([]byte) bool { return func(b []byte) bool { return at(b, 0, magic) } }

// at reports whether bytes have a text at an offset.
func at(b []byte, offset int, text string) bool {
	return len(b) >= offset+len(text) && string(b[offset:offset+len(text)]) == text
}

func isGIF(b []byte) bool { return at(b, 0, "GIF87a") || at(b, 0, "GIF89a") }

// formatOf returns the format of a file; nil: it is not shown.
func formatOf(head []byte) *format {
	for i := range formats {
		if formats[i].is(head) {
			return &formats[i]
		}
	}
	return nil
}

// IsFile reports whether a file that begins like head is an image or a document that models are
// shown, and not a text that begins like one.
func IsFile(head []byte) bool {
	f := formatOf(head)
	if f == nil {
		return false
	}
	isText := bytes.IndexByte(head, 0) < 0 && utf8.Valid(head)
	return f.kind == step.PartDocument || !isText
}

// inspect returns the description of a file, without its digest.
func inspect(name string, data []byte) (step.Part, error) {
	f := formatOf(data)
	if f == nil {
		return step.Part{}, otherFormat(data)
	}
	file := &step.File{MediaType: f.mediaType, Size: int64(len(data)), Name: name}
	if err := CheckSize(file.Size); err != nil {
		return step.Part{}, err
	}
	if f.pixels != nil {
		file.Width, file.Height = f.pixels(data)
		if file.Width <= 0 || file.Height <= 0 {
			return step.Part{}, &DamagedError{MediaType: f.mediaType}
		}
		if file.Width > MaxPixels/file.Height { // their product may not fit an int64
			return step.Part{}, &PixelsError{Width: file.Width, Height: file.Height}
		}
	}
	return step.Part{Kind: f.kind, File: file}, nil
}

// otherFormat returns the format of a file that is not shown.
func otherFormat(data []byte) *FormatError {
	head := data[:min(len(data), HeadBytes)]
	isText := bytes.IndexByte(head, 0) < 0
	for magic, name := range otherFormats {
		if begins(magic)(head) {
			return &FormatError{Found: name, IsText: isText}
		}
	}
	start := bytes.TrimSpace(head)
	switch isXML := at(start, 0, "<?xml") || at(start, 0, "<svg"); {
	case at(head, 4, "ftyp") && !isText:
		return &FormatError{Found: "HEIC, AVIF or a video"}
	case isXML && bytes.Contains(head, []byte("<svg")):
		return &FormatError{Found: "SVG", IsText: true}
	}
	return &FormatError{Found: "not an image or a PDF", IsText: true}
}

// CheckFormat returns a FormatError unless a file that begins like head is an image or a document
// that models are shown.
func CheckFormat(head []byte) error {
	if IsFile(head) {
		return nil
	}
	return otherFormat(head)
}

// CheckSize refuses a file that is too large to be sent, before it is read.
func CheckSize(size int64) error {
	if size > MaxBytes {
		return &SizeError{Size: size}
	}
	return nil
}

// A SizeError means that a file is too large.
type SizeError struct{ Size int64 }

func (e *SizeError) Error() string {
	const mib = 1 << 20
	return fmt.Sprintf("it has %.1f MiB, and at most %.2f MiB are sent. Make it smaller, or cut out what matters",
		float64(e.Size)/mib, float64(MaxBytes)/mib)
}

// A PixelsError means that an image has too many pixels.
type PixelsError struct{ Width, Height int }

func (e *PixelsError) Error() string {
	return fmt.Sprintf("it has %dx%d pixels, and at most %d million are sent. Scale it down, or cut out what matters",
		e.Width, e.Height, MaxPixels/1_000_000)
}

// A FormatError means that a file is not of a format that models take.
type FormatError struct {
	// Found is the format of the file.
	Found string
	// IsText is false if the file is an image of an unsupported format, which cannot be read as text.
	IsText bool
}

func (e *FormatError) Error() string {
	return "it is " + e.Found + ", and models take PNG, JPEG, GIF, WebP and PDF. Convert it to one of these"
}

// A DamagedError means that the header of an image cannot be read.
type DamagedError struct{ MediaType string }

func (e *DamagedError) Error() string {
	return "it is a damaged " + e.MediaType + ", of which no size can be read. Make it again"
}

// pngPixels reads the chunk IHDR. https://www.w3.org/TR/png-3/#11IHDR
func pngPixels(b []byte) (width, height int) {
	if len(b) < 24 || !at(b, 12, "IHDR") {
		return 0, 0
	}
	return int(binary.BigEndian.Uint32(b[16:])), int(binary.BigEndian.Uint32(b[20:]))
}

// gifPixels reads the logical screen. https://www.w3.org/Graphics/GIF/spec-gif89a.txt
func gifPixels(b []byte) (width, height int) {
	if len(b) < 10 {
		return 0, 0
	}
	return int(binary.LittleEndian.Uint16(b[6:])), int(binary.LittleEndian.Uint16(b[8:]))
}

// jpegPixels walks the segments to the start of the frame. https://www.w3.org/Graphics/JPEG/itu-t81.pdf
func jpegPixels(b []byte) (width, height int) {
	for i := 2; i+9 <= len(b); {
		if b[i] != 0xff {
			return 0, 0
		}
		marker := b[i+1]
		if marker == 0xff { // a byte that fills
			i++
			continue
		}
		switch {
		case marker == 0x01, marker >= 0xd0 && marker <= 0xd7: // without a length
			i += 2
		case isFrame(marker):
			return int(binary.BigEndian.Uint16(b[i+7:])), int(binary.BigEndian.Uint16(b[i+5:]))
		case marker == 0xda, marker == 0xd9: // the data, or the end
			return 0, 0
		default:
			i += 2 + int(binary.BigEndian.Uint16(b[i+2:]))
		}
	}
	return 0, 0
}

// isFrame reports whether a marker starts a frame.
func isFrame(marker byte) bool {
	return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc
}

// webpPixels reads the first chunk, of one of three kinds.
// https://developers.google.com/speed/webp/docs/riff_container
func webpPixels(b []byte) (width, height int) {
	if len(b) < 30 {
		return 0, 0
	}
	const bits14 = 1<<14 - 1
	switch string(b[12:16]) {
	case "VP8X":
		return 1 + int(b[24]) + int(b[25])<<8 + int(b[26])<<16, 1 + int(b[27]) + int(b[28])<<8 + int(b[29])<<16
	case "VP8L":
		bits := int(binary.LittleEndian.Uint32(b[21:]))
		return 1 + bits&bits14, 1 + bits>>14&bits14
	case "VP8 ":
		return int(binary.LittleEndian.Uint16(b[26:])) & bits14, int(binary.LittleEndian.Uint16(b[28:])) & bits14
	}
	return 0, 0
}
