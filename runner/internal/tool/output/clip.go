package output

import "unicode/utf8"

// A Clip keeps the beginning and the end of a text.
type Clip struct {
	half     int
	head     []byte
	headLeft int // characters that still fit into the head
	tail     []byte
	total    int // characters
}

// NewClip returns a Clip of at most most characters.
func NewClip(most int) *Clip { return &Clip{half: most / 2, headLeft: most / 2} }

// Write appends valid UTF-8 of complete characters.
func (c *Clip) Write(text []byte) {
	c.total += utf8.RuneCount(text)
	for c.headLeft > 0 && len(text) > 0 {
		_, n := utf8.DecodeRune(text)
		c.head = append(c.head, text[:n]...)
		text = text[n:]
		c.headLeft--
	}
	// Truncate the tail when it is longer than two tails of the longest characters.
	if most := 2 * utf8.UTFMax * c.half; len(text) > most {
		c.tail, text = c.tail[:0], text[start(text, c.half):]
	} else if len(c.tail)+len(text) > most {
		c.tail = append(c.tail[:0], c.tail[start(c.tail, c.half):]...)
	}
	c.tail = append(c.tail, text...)
}

// Cut returns how many characters are not kept.
func (c *Clip) Cut() int { return max(0, c.total-2*c.half) }

// Ends returns the beginning and the end. If nothing was cut they are the complete
// text.
func (c *Clip) Ends() (head, tail string) {
	return string(c.head), string(c.tail[start(c.tail, c.half):])
}

// start returns the offset of the last so many characters of a text.
func start(text []byte, characters int) int {
	at := len(text)
	for at > 0 && characters > 0 {
		_, n := utf8.DecodeLastRune(text[:at])
		at -= n
		characters--
	}
	return at
}
