package journal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
)

// A line is {"crc":"xxxxxxxx","record":…}: JSON to a human reader, a
// fixed prefix to us, so that the checksum is checked over the very bytes.
const (
	linePrefix = `{"crc":"`
	lineMiddle = `","record":`
	lineSuffix = "}\n"
	crcLen     = 8
	bodyStart  = len(linePrefix) + crcLen + len(lineMiddle)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeLine is r as a line.
func encodeLine(r Record) ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding a journal record: %w", err)
	}
	return slices.Concat([]byte(linePrefix+checksum(body)+lineMiddle), body, []byte(lineSuffix)), nil
}

func checksum(body []byte) string {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.Checksum(body, castagnoli))
	return hex.EncodeToString(sum[:])
}

var errNotALine = errors.New("not a line of a journal")

// verifiedRecord is the record of a line whose checksum is right.
func verifiedRecord(line []byte) ([]byte, error) {
	if len(line) < bodyStart+len(lineSuffix) || !bytes.HasSuffix(line, []byte(lineSuffix)) ||
		!bytes.HasPrefix(line, []byte(linePrefix)) || string(line[bodyStart-len(lineMiddle):bodyStart]) != lineMiddle {
		return nil, errNotALine
	}
	b := line[bodyStart : len(line)-len(lineSuffix)]
	if checksum(b) != string(line[len(linePrefix):len(linePrefix)+crcLen]) {
		return nil, errors.New("its checksum is wrong")
	}
	return b, nil
}

// A rawLine is a whole line of a segment: the bytes of its record, and where
// the line ends in the file.
type rawLine struct {
	body []byte
	end  int64
}

// lineBuffer is how many bytes of a line are read without a copy.
const lineBuffer = 256 << 10

// scan returns the whole lines of a segment. A bad last line is where a crash
// cut the file: it is left out. A bad line with others behind it is damage.
// The bytes of a line are valid until the next.
func scan(name string, r io.Reader) iter.Seq2[rawLine, error] {
	return func(yield func(rawLine, error) bool) {
		s := scanner{name: name, in: bufio.NewReaderSize(r, lineBuffer)}
		for {
			l, err := s.next()
			if errors.Is(err, io.EOF) || !yield(l, err) || err != nil {
				return
			}
		}
	}
}

// A scanner reads a segment line by line.
type scanner struct {
	name string
	in   *bufio.Reader
	n    int
	end  int64
}

// next is the next whole line; io.EOF says that there are no more.
func (s *scanner) next() (rawLine, error) {
	line, err := readLine(s.in)
	if err != nil && !errors.Is(err, io.EOF) {
		return rawLine{}, fmt.Errorf("reading the journal %s: %w", s.name, err)
	}
	s.n++
	b, bad := verifiedRecord(line)
	if bad == nil {
		s.end += int64(len(line))
		return rawLine{body: b, end: s.end}, nil
	}
	if _, err := s.in.Peek(1); err != nil {
		return rawLine{}, io.EOF // torn, or the end
	}
	return rawLine{}, &CorruptError{File: s.name, Line: s.n, Reason: bad.Error()}
}

// lines are the whole lines of the file of a segment.
func lines(path string) iter.Seq2[rawLine, error] {
	return func(yield func(rawLine, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(rawLine{}, fmt.Errorf("opening the journal: %w", err))
			return
		}
		defer f.Close()
		scan(filepath.Base(path), f)(yield)
	}
}

// readLine reads up to and including a newline without copying a line that
// fits the buffer.
func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	whole := bytes.Clone(line)
	rest, err := in.ReadBytes('\n')
	return append(whole, rest...), err
}
