package attachment_test

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/attachment"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// encoded returns an image of 30 by 20 pixels as the standard library writes it.
func encoded(t *testing.T, encode func(*bytes.Buffer, image.Image) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b, image.NewPaletted(image.Rect(0, 0, 30, 20), color.Palette{color.Black, color.White})); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func pngOf(t *testing.T) []byte {
	return encoded(t, func(b *bytes.Buffer, i image.Image) error { return png.Encode(b, i) })
}

// sized returns a PNG whose header has another size.
func sized(data []byte, width, height uint32) []byte {
	data = bytes.Clone(data)
	binary.BigEndian.PutUint32(data[16:], width)
	binary.BigEndian.PutUint32(data[20:], height)
	return data
}

func webp(chunk string, header ...byte) []byte {
	b := append([]byte("RIFF\x40\x00\x00\x00WEBP"+chunk+"\x30\x00\x00\x00"), header...)
	return append(b, make([]byte, 32)...)
}

func TestAddKnowsWhatAFileIs(t *testing.T) {
	jpegData := encoded(t, func(b *bytes.Buffer, i image.Image) error { return jpeg.Encode(b, i, nil) })
	// A thumbnail in the metadata has a start of a frame of its own, and bytes may fill.
	thumbnail := append([]byte{0xff, 0xd8, 0xff, 0xe1, 0, 13, 0xff, 0xc0, 0, 11, 8, 0, 1, 0, 1, 1, 1, 0xff}, jpegData[2:]...)
	cases := map[string]struct {
		data []byte
		want step.File
	}{
		"a PNG":                          {pngOf(t), step.File{MediaType: "image/png", Width: 30, Height: 20}},
		"a JPEG":                         {jpegData, step.File{MediaType: "image/jpeg", Width: 30, Height: 20}},
		"a JPEG with a thumbnail":        {thumbnail, step.File{MediaType: "image/jpeg", Width: 30, Height: 20}},
		"a GIF":                          {encoded(t, func(b *bytes.Buffer, i image.Image) error { return gif.Encode(b, i, nil) }), step.File{MediaType: "image/gif", Width: 30, Height: 20}},
		"a WebP with loss":               {webp("VP8 ", 0, 0, 0, 0x9d, 1, 0x2a, 30, 0, 20, 0), step.File{MediaType: "image/webp", Width: 30, Height: 20}},
		"a WebP without loss":            {webp("VP8L", 0x2f, 29, 0xc0, 4, 0), step.File{MediaType: "image/webp", Width: 30, Height: 20}},
		"a WebP with more":               {webp("VP8X", 0, 0, 0, 0, 29, 0, 0, 19, 0, 0), step.File{MediaType: "image/webp", Width: 30, Height: 20}},
		"a PDF":                          {[]byte("%PDF-1.4\nx"), step.File{MediaType: "application/pdf"}},
		"as many pixels as there may be": {sized(pngOf(t), 40_000, 1_000), step.File{MediaType: "image/png", Width: 40_000, Height: 1_000}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			store, err := attachment.Open("")
			if err != nil {
				t.Fatal(err)
			}
			got, err := store.Add("a", tc.data)
			if err != nil {
				t.Fatal(err)
			}
			tc.want.Name, tc.want.Size, tc.want.Digest = "a", int64(len(tc.data)), got.File.Digest
			if *got.File != tc.want {
				t.Errorf("Add() = %+v, want %+v", *got.File, tc.want)
			}
		})
	}
}

func TestAddRefusesAFileAndSaysWhatToDo(t *testing.T) {
	cases := map[string]struct {
		data []byte
		want string
	}{
		"a PNG that unpacks to gigabytes":   {sized(pngOf(t), 60_000, 60_000), "it has 60000x60000 pixels, and at most 40 million are sent. Scale it down, or cut out what matters"},
		"one pixel row too many":            {sized(pngOf(t), 40_000, 1_001), "it has 40000x1001 pixels, and at most 40 million"},
		"ten billion pixels":                {sized(pngOf(t), 100_000, 100_000), "it has 100000x100000 pixels, and at most 40 million"},
		"a product above an int64":          {sized(pngOf(t), 1<<32-1, 1<<32-1), "it has 4294967295x4294967295 pixels, and at most 40 million"},
		"an image without pixels":           {sized(pngOf(t), 0, 20), "it is a damaged image/png, of which no size can be read. Make it again"},
		"a header that is cut":              {pngOf(t)[:20], "it is a damaged image/png, of which no size can be read. Make it again"},
		"a JPEG without a frame":            {[]byte("\xff\xd8\xff\xda\x00\x04abcdefgh"), "it is a damaged image/jpeg, of which no size can be read. Make it again"},
		"a JPEG of segments without length": {append([]byte("\xff\xd8"), bytes.Repeat([]byte{0xff, 0xe0, 0, 0}, 100)...), "it is a damaged image/jpeg, of which no size can be read. Make it again"},
		"a large image":                     {append(pngOf(t), make([]byte, 4<<20)...), "it has 4.0 MiB, and at most 3.75 MiB are sent. Make it smaller"},
		"a bitmap":                          {[]byte("BM1234"), "it is BMP, and models take PNG, JPEG, GIF, WebP and PDF. Convert it to one of these"},
		"a photo of a phone":                {[]byte("\x00\x00\x00\x18ftypheic"), "it is HEIC, AVIF or a video"},
		"a text":                            {[]byte("hello"), "it is not an image or a PDF"},
		"nothing":                           {nil, "it is not an image or a PDF"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			store, err := attachment.Open("")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.Add("a", tc.data); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Add() = %v, want %q", err, tc.want)
			}
		})
	}
}

func TestIsFileTakesNoTextForAnImage(t *testing.T) {
	for text, want := range map[string]bool{
		"GIF89a is a format of images\n": false, "RIFF1234WEBP is another": false, "%PDF-1.4\n": true,
		"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR": true, "package png": false, "": false,
	} {
		if got := attachment.IsFile([]byte(text)); got != want {
			t.Errorf("IsFile(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestStoreKeepsFilesForTheNextAttempt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "files")
	data := pngOf(t)
	first, err := attachment.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	part, err := first.Add("a", data)
	if err != nil {
		t.Fatal(err)
	}
	second, err := attachment.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := second.ReadFile(part.File.Digest); err != nil || !bytes.Equal(got, data) {
		t.Errorf("ReadFile() = %d bytes, %v", len(got), err)
	}
	if err := os.WriteFile(filepath.Join(dir, part.File.Digest), []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, digest := range []string{part.File.Digest, "../" + part.File.Digest, strings.Repeat("0", 64)} {
		if got, err := second.ReadFile(digest); err == nil {
			t.Errorf("ReadFile(%q) = %q", digest, got)
		}
	}
	if again, err := second.Add("b", data); err != nil || again.File.Digest != part.File.Digest {
		t.Errorf("Add() = %+v, %v", again, err)
	}
	if got, err := second.ReadFile(part.File.Digest); err != nil || !bytes.Equal(got, data) {
		t.Errorf("after another Add, ReadFile() = %d bytes, %v", len(got), err)
	}
}

func TestStoreIsBounded(t *testing.T) {
	store, err := attachment.Open("")
	if err != nil {
		t.Fatal(err)
	}
	data := append(pngOf(t), make([]byte, attachment.MaxBytes-200)...)
	for i := range attachment.MaxStored/len(data) + 1 {
		binary.BigEndian.PutUint32(data[len(data)-4:], uint32(i))
		_, err = store.Add("a", bytes.Clone(data))
	}
	if err == nil || !strings.Contains(err.Error(), "the Run keeps 256 MiB of images") {
		t.Errorf("Add() = %v", err)
	}
}
