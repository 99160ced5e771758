package files

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/tool"
)

// png begins like an image of 2 by 3 pixels.
const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x02\x00\x00\x00\x03 the rest"

// read calls Read.
func (b bench) read(path string) tool.Result {
	b.t.Helper()
	for _, one := range b.Tools() {
		if one.Name == NameRead {
			args, _ := json.Marshal(map[string]string{"path": path})
			got, err := one.Call(b.t.Context(), tool.Call{Name: NameRead, Args: args})
			if err != nil {
				b.t.Fatal(err)
			}
			return got
		}
	}
	return tool.Result{}
}

func TestReadShowsImagesAndDocuments(t *testing.T) {
	b := newBench(t)
	for name, content := range map[string]string{
		"chart.png": png, "no-extension": png, "paper.pdf": "%PDF-1.4\nx", "large.png": png + strings.Repeat("x", 4<<20),
		"gif.txt": "GIF89a is a format\n", "empty.png": "", "text.png": "hello\n",
		"scan.tiff": "II*\x00\x08\x00\x00\x00", "old.bmp": "BM\x36\x00\x00\x00\x00\x00", "photo.jpg": "\x00\x00\x00\x18ftypheic\x00\x00",
		"cars.txt": "BMW drives\n", "icon.svg": "<svg></svg>\n", "font.txt": "abc ftyp\n",
	} {
		b.put(name, content)
	}
	cases := map[string]struct {
		file, text string
	}{
		"chart.png":    {png, "/workspace/chart.png has"},
		"no-extension": {png, "/workspace/no-extension has"},
		"paper.pdf":    {"%PDF-1.4\nx", "/workspace/paper.pdf has 10 bytes"},
		"large.png":    {"", "Error: /workspace/large.png is not shown: it has 4.0 MiB, and at most 3.75 MiB are sent. Make it smaller"},
		"gif.txt":      {"", "1  GIF89a is a format"},
		"empty.png":    {"", "File exists but has empty contents"},
		"text.png":     {"", "1  hello"},
		"scan.tiff":    {"", "Error: /workspace/scan.tiff is not shown: it is TIFF, and models take PNG, JPEG, GIF, WebP and PDF. Convert it to one of these"},
		"old.bmp":      {"", "Error: /workspace/old.bmp is not shown: it is BMP, and models take"},
		"photo.jpg":    {"", "Error: /workspace/photo.jpg is not shown: it is HEIC, AVIF or a video, and models take"},
		"cars.txt":     {"", "1  BMW drives"},
		"icon.svg":     {"", "1  <svg></svg>"},
		"font.txt":     {"", "1  abc ftyp"},
		"none.png":     {"", "Error: File 'none.png' not found"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := b.read(name)
			file := ""
			for _, f := range got.Files {
				file += string(f.Data)
			}
			if file != tc.file || !strings.Contains(got.Render(), tc.text) {
				t.Errorf("Read() = %d bytes and %q, want %d and %q", len(file), got.Render(), len(tc.file), tc.text)
			}
		})
	}
}
