package convert

import (
	"slices"
	"strings"
)

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
