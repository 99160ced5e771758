package convert

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
)

// lines has the lines of a document and the positions of the entries of spec, so that only changed entries are
// rewritten.
type lines struct {
	all     []string // with their ends
	compact bool     // lists are not indented more than their names
	spec    *yamlnode.Node
	entries []entry
	end     int // the index of the first line behind spec
}

// An entry is an original field of spec.
type entry struct {
	key        *yamlnode.Node
	head, text string // the comment above it, and the entry itself
	begin, end int    // the indexes of its first line and of the first line behind it
	behind     int    // the index of the first line of the next entry: blank lines and comments are between
}

// linesOf reads the lines of a document before it is changed.
func linesOf(data []byte, root *yamlnode.Node) *lines {
	l := &lines{all: linesIn(string(data)), compact: isCompact(root)}
	at := find(root, "spec")
	if at < 0 || root.Style&yamlnode.FlowStyle != 0 {
		return l
	}
	spec := root.Content[at+1]
	if spec.Kind != yamlnode.MappingNode || spec.Style&yamlnode.FlowStyle != 0 || len(spec.Content) == 0 || spec.Line == root.Content[at].Line {
		return l
	}
	l.spec = spec
	l.end = len(l.all)
	if at+2 < len(root.Content) {
		l.end = root.Content[at+2].Line - 1
	}
	for i := 0; i < len(l.spec.Content); i += 2 {
		l.entries = append(l.entries, l.entryAt(i))
	}
	return l
}

func (l *lines) entryAt(i int) entry {
	key := l.spec.Content[i]
	e := entry{key: key, head: key.HeadComment, begin: key.Line - 1, behind: l.end}
	key.HeadComment = "" // its lines stay
	if i+2 < len(l.spec.Content) {
		e.behind = l.spec.Content[i+2].Line - 1
	}
	e.end = e.behind
	for e.end > e.begin+1 && isBetween(l.all[e.end-1], key.Column-1) {
		e.end--
	}
	e.text, _ = l.pair(key, l.spec.Content[i+1], nil)
	return e
}

// isBetween reports whether a line at the end of an entry belongs to no entry: it is blank, or a comment that is not
// indented more than the entry.
func isBetween(line string, indent int) bool {
	rest := strings.TrimLeft(line, " ")
	return strings.TrimSpace(rest) == "" || strings.HasPrefix(rest, "#") && len(line)-len(rest) <= indent
}

var errOneLine = errors.New("spec is not written in lines of its own")

// write returns the document with the current entries of spec. Unchanged entries, and the lines between entries, keep
// their text.
func (l *lines) write() ([]byte, error) {
	if l.spec == nil || len(l.entries) == 0 {
		return nil, errOneLine
	}
	var b strings.Builder
	done := l.entries[0].begin
	b.WriteString(strings.Join(l.all[:done], ""))
	for i := 0; i < len(l.spec.Content); i += 2 {
		key, value := l.spec.Content[i], l.spec.Content[i+1]
		at := slices.IndexFunc(l.entries, func(e entry) bool { return e.key == key })
		e := entry{begin: done, end: done, behind: done} // it is new
		if at >= 0 {
			e = l.entries[at]
		}
		b.WriteString(l.between(done, e.begin))
		text, err := l.pair(key, value, l.all[e.end:e.behind])
		if err != nil {
			return nil, err
		}
		if before, _ := l.pair(key, value, nil); at >= 0 && before == e.text {
			text = strings.Join(l.all[e.begin:e.end], "")
		} else if at >= 0 {
			text = merge(l.all[e.begin:e.end], linesIn(e.text), linesIn(text))
		}
		b.WriteString(text)
		done = e.end
	}
	b.WriteString(l.between(done, l.end))
	b.WriteString(strings.Join(l.all[l.end:], ""))
	return []byte(b.String()), nil
}

func linesIn(text string) []string { return slices.Collect(strings.Lines(text)) }

// whole returns the whole document rewritten.
func (l *lines) whole(root *yamlnode.Node) ([]byte, error) {
	for _, e := range l.entries {
		e.key.HeadComment = e.head
	}
	return l.encode(root)
}

// between returns the lines from one index to another that belong to no entry.
func (l *lines) between(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		if !slices.ContainsFunc(l.entries, func(e entry) bool { return e.begin <= i && i < e.end }) {
			b.WriteString(l.all[i])
		}
	}
	return b.String()
}

// pair returns the lines of an entry, without the comments in the lines above and below it.
func (l *lines) pair(key, value *yamlnode.Node, below []string) (string, error) {
	k := *key
	k.HeadComment, k.FootComment = "", ""
	v := withoutFoot(value, below)
	data, err := l.encode(&yamlnode.Node{Kind: yamlnode.MappingNode, Tag: "!!map", Content: []*yamlnode.Node{&k, v}})
	var b strings.Builder
	for line := range strings.Lines(string(data)) {
		if strings.TrimSpace(line) != "" {
			b.WriteString(strings.Repeat(" ", l.spec.Column-1))
		}
		b.WriteString(line)
	}
	text := b.String()
	if strings.HasSuffix(l.all[0], "\r\n") {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return text, err
}

// withoutFoot returns a copy of a node without the comments that are in the lines below it.
func withoutFoot(n *yamlnode.Node, below []string) *yamlnode.Node {
	if len(below) == 0 {
		return n
	}
	out := *n
	if foot := strings.TrimSpace(n.FootComment); foot != "" && strings.Contains(trimmed(below), trimmed(strings.Split(foot, "\n"))) {
		out.FootComment = ""
	}
	out.Content = nil
	for _, c := range n.Content {
		out.Content = append(out.Content, withoutFoot(c, below))
	}
	return &out
}

func trimmed(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// encode writes a node.
func (l *lines) encode(n *yamlnode.Node) ([]byte, error) {
	var b bytes.Buffer
	encoder := yamlnode.NewEncoder(&b)
	encoder.SetIndent(2) //nolint:mnd // as kubectl writes
	if l.compact {
		encoder.CompactSeqIndent()
	}
	err := encoder.Encode(n)
	return b.Bytes(), errors.Join(err, encoder.Close())
}

// isCompact reports whether the first list below a node is not indented more than its name.
func isCompact(n *yamlnode.Node) bool {
	compact, found := true, false
	var walk func(n *yamlnode.Node)
	walk = func(n *yamlnode.Node) {
		for i := 0; i < len(n.Content) && !found; i++ {
			c := n.Content[i]
			if n.Kind == yamlnode.MappingNode && i%2 == 1 && c.Kind == yamlnode.SequenceNode && c.Style&yamlnode.FlowStyle == 0 && c.Line > 0 {
				compact, found = c.Column == n.Content[i-1].Column, true
			}
			walk(c)
		}
	}
	walk(n)
	return compact
}

// maxMerged bounds the product of the numbers of lines that matches compares. Texts above it match in their
// first and last lines only.
const maxMerged = 4 << 20

// merge returns the lines of a text that was changed from base to now, in which lines of was that did not
// change stay to the byte. base is was in the form of the encoder, which now has too.
func merge(was, base, now []string) string {
	inWas, inNow := matches(base, was), matches(base, now)
	var b strings.Builder
	x, y, z := 0, 0, 0 // behind what is written: of base, was and now
	for at := 1; at <= len(base); at++ {
		w, n := beginOf(inWas, at, len(was)), beginOf(inNow, at, len(now))
		if w < y || n < z { // it is not known where the line begins
			continue
		}
		part := now[z:n]
		if slices.Equal(base[x:at], part) {
			part = was[y:w]
		}
		b.WriteString(strings.Join(part, ""))
		x, y, z = at, w, n
	}
	return b.String()
}

// beginOf returns where a line of base begins in another text of n lines; -1: that is not known.
func beginOf(matches []int, line, n int) int {
	switch {
	case line == len(matches):
		return n
	case matches[line-1] >= 0:
		return matches[line-1] + 1
	}
	return matches[line]
}

// matches returns for each line of a text which line of another text is the same, in their order; -1: none.
func matches(a, b []string) []int {
	out := make([]int, len(a))
	for i := range out {
		out[i] = -1
	}
	begin := 0
	for begin < min(len(a), len(b)) && a[begin] == b[begin] {
		out[begin] = begin
		begin++
	}
	endA, endB := len(a), len(b)
	for endA > begin && endB > begin && a[endA-1] == b[endB-1] {
		endA, endB = endA-1, endB-1
		out[endA] = endB
	}
	if (endA-begin)*(endB-begin) <= maxMerged {
		for i, j := range longestCommon(a[begin:endA], b[begin:endB]) {
			if j >= 0 {
				out[begin+i] = begin + j
			}
		}
	}
	return out
}

// longestCommon returns the longest common subsequence of two texts, as matches does.
func longestCommon(a, b []string) []int {
	width := len(b) + 1
	length := make([]int32, (len(a)+1)*width) // of the rest of a and b from these lines on
	for i, line := range slices.Backward(a) {
		for j, other := range slices.Backward(b) {
			if line == other {
				length[i*width+j] = length[(i+1)*width+j+1] + 1
			} else {
				length[i*width+j] = max(length[(i+1)*width+j], length[i*width+j+1])
			}
		}
	}
	out := make([]int, len(a))
	for i, j := 0, 0; i < len(a); {
		switch {
		case j < len(b) && a[i] == b[j]:
			out[i] = j
			i, j = i+1, j+1
		case j < len(b) && length[i*width+j+1] >= length[(i+1)*width+j]:
			j++
		default:
			out[i] = -1
			i++
		}
	}
	return out
}
