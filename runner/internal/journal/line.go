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

// A line is {"crc":"xxxxxxxx","record":…}. It is JSON for readers, with a prefix of fixed size, so that the checksum
// covers exactly the bytes of the record.
const (
	linePrefix = `{"crc":"`
	lineMiddle = `","record":`
	lineSuffix = "}\n"
	crcLen     = 8
	bodyStart  = len(linePrefix) + crcLen + len(lineMiddle)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeLine returns a record as a line.
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

// verifiedRecord returns the record of a line, after checking its checksum.
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

// A rawLine is a complete line of a segment: the bytes of its record, and the offset of the line's end in the file.
type rawLine struct {
	body []byte
	end  int64
}

// lineBuffer is the size of the longest line, in bytes, that is read without a copy.
const lineBuffer = 256 << 10

// scan returns the complete lines of a segment. An incomplete or wrong last line comes from a crash and is left out. A
// wrong line with others after it is damage. The bytes of a line are valid until the next one is read.
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

// next returns the next complete line; io.EOF: there are no more.
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

// lines returns the complete lines of the file of a segment.
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
