package local

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// A mask replaces the text of a line that matches a pattern.
type mask struct {
	pattern *regexp.Regexp
	text    string
}

// A cell is a character on a screen, and the classes with which it is drawn.
type cell struct {
	char    rune
	classes string
}

// A screen is a terminal without borders. It knows what this program writes (ECMA-48): text, CR, LF, Erase
// in Line, and the attributes of sgrClasses.
type screen struct {
	lines   [][]cell
	column  int
	classes []string
}

// sgrClasses are the classes of the attributes that this program sets.
var sgrClasses = map[string]string{"1": "bold", "2": "dim", "31": "red", "32": "green", "33": "yellow", "36": "cyan"}

var controlSequence = regexp.MustCompile(`^\x1b\[([0-9;]*)([A-Za-z])`)

// write shows text. It returns an error if the text has a control sequence that the screen does not know.
func (s *screen) write(text string) error {
	for text != "" {
		if m := controlSequence.FindStringSubmatch(text); m != nil {
			if !s.control(m[1], m[2]) {
				return fmt.Errorf("the screen does not know the control sequence %q", m[0])
			}
			text = text[len(m[0]):]
			continue
		}
		char, size := utf8.DecodeRuneInString(text)
		s.put(char)
		text = text[size:]
	}
	return nil
}

func (s *screen) control(parameters, function string) bool {
	switch {
	case function == "K" && parameters == "2":
		s.lines[len(s.lines)-1] = nil
		return true
	case function != "m":
		return false
	case parameters == "0" || parameters == "":
		s.classes = nil
		return true
	}
	class, known := sgrClasses[parameters]
	s.classes = append(s.classes, class)
	return known
}

func (s *screen) put(char rune) {
	line := &s.lines[len(s.lines)-1]
	switch {
	case char == '\r':
		s.column = 0
		return
	case char == '\n':
		s.lines, s.column = append(s.lines, nil), 0
		return
	case s.column < len(*line):
		(*line)[s.column].char = char
	default:
		*line = append(*line, cell{char: char})
	}
	(*line)[s.column].classes = strings.Join(s.classes, " ")
	s.column++
}

// text is the characters of a line.
func text(line []cell) string {
	var out strings.Builder
	for _, c := range line {
		out.WriteRune(c.char)
	}
	return out.String()
}

// replace returns a line with a mask applied. New text looks like the beginning of what it replaces.
func (m mask) replace(line []cell) []cell {
	before := text(line)
	matches := m.pattern.FindAllStringSubmatchIndex(before, -1)
	for _, at := range slices.Backward(matches) {
		first, end := utf8.RuneCountInString(before[:at[0]]), utf8.RuneCountInString(before[:at[1]])
		var inserted []cell
		for _, char := range string(m.pattern.ExpandString(nil, m.text, before, at)) {
			inserted = append(inserted, cell{char, line[first].classes})
		}
		line = slices.Concat(line[:first], inserted, line[end:])
	}
	return line
}

// Measures of the picture, in pixels.
const (
	svgFont, svgChar, svgLine, svgBorder = 14, 8.43, 20, 16
	svgStyle                             = `
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; fill: #1f2328; }
rect { fill: #f6f8fa; stroke: #d1d9e0; }
.bold { font-weight: bold; } .dim { fill: #59636e; } .red { fill: #c21c2c; }
.green { fill: #116329; } .yellow { fill: #7d4e00; } .cyan { fill: #0a5a66; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } rect { fill: #0d1117; stroke: #3d444d; } .dim { fill: #9198a1; } .red { fill: #ff7b72; }
.green { fill: #56d364; } .yellow { fill: #e3b341; } .cyan { fill: #56d4dd; }
}
`
)

// drawScreen returns an SVG of what a terminal of a width shows after text was written to it. Each span has its
// place and width, so that it is the same with every font.
func drawScreen(printed string, columns int, masks []mask) (string, error) {
	s := &screen{lines: [][]cell{nil}}
	if err := s.write(printed); err != nil {
		return "", err
	}
	rows := 0
	var body strings.Builder
	for _, line := range s.lines[:len(s.lines)-1] { // the cursor is below the last line
		for _, m := range masks {
			line = m.replace(line)
		}
		for from := 0; from == 0 || from < len(line); from += columns {
			drawLine(&body, line[from:min(from+columns, len(line))], svgBorder+svgLine*rows+svgFont)
			rows++
		}
	}
	width, height := int(float64(columns)*svgChar)+2*svgBorder, svgLine*rows+2*svgBorder
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img">
<style>%[3]s</style>
<rect x="0.5" y="0.5" width="%[4]d" height="%[5]d" rx="8"/>
%[6]s</svg>
`, width, height, svgStyle, width-1, height-1, body.String()), nil
}

// drawLine draws the spans of a line, each of which looks the same throughout.
func drawLine(out *strings.Builder, line []cell, y int) {
	for from := 0; from < len(line); {
		to := from
		for to < len(line) && line[to].classes == line[from].classes {
			to++
		}
		span := text(line[from:to])
		if strings.TrimSpace(span) != "" {
			class := ""
			if line[from].classes != "" {
				class = fmt.Sprintf(` class="%s"`, line[from].classes)
			}
			fmt.Fprintf(out, `<text x="%.2f" y="%d" textLength="%.2f"%s>`, svgBorder+svgChar*float64(from), y, svgChar*float64(to-from), class)
			_ = xml.EscapeText(out, []byte(span)) // a Builder returns no error
			out.WriteString("</text>\n")
		}
		from = to
	}
}

func TestScreenShowsWhatATerminalShows(t *testing.T) {
	const printed = "plain\r\n\x1b[1m\x1b[31mred\x1b[0m and \x1b[2mdim\x1b[0m\r\nStarting · 0s\r\x1b[2K<done>\r\nabc\rx\r\n"
	s := &screen{lines: [][]cell{nil}}
	if err := s.write(printed); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range s.lines {
		got = append(got, text(line))
	}
	if diff := cmp.Diff([]string{"plain", "red and dim", "<done>", "xbc", ""}, got); diff != "" {
		t.Errorf("lines -want +got:\n%s", diff)
	}
	drawn, err := drawScreen(printed, 6, []mask{{regexp.MustCompile(`an(d)|m$`), "AN$1"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`class="bold red">red</text>`, `> AN</text>`, `>d </text>`, `class="dim">diAN</text>`, `>&lt;done&gt;</text>`} {
		if !strings.Contains(drawn, want) {
			t.Errorf("the picture has no %s:\n%s", want, drawn)
		}
	}
}

func TestScreenRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, sequence := range []string{"\x1b[2J", "\x1b[35m", "\x1b[K"} {
		if err := (&screen{lines: [][]cell{nil}}).write(sequence); err == nil {
			t.Errorf("%q is shown", sequence)
		}
	}
}
