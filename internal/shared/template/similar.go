package template

import "fmt"

// Similar suggests the name that is meant by a wrong one, as text to append to a
// message; empty: none is close.
func Similar(name string, names []string) string {
	best, most := "", 1+len(name)/4
	for _, n := range names {
		if d := EditDistance(name, n); d <= most {
			best, most = n, d-1
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// EditDistance is how many bytes must be added, removed or replaced to make one name of
// another. It is not computed for names of more than 64 bytes, which count as different in
// every byte.
func EditDistance(from, to string) int {
	if len(from) > 64 || len(to) > 64 {
		return max(len(from), len(to))
	}
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(from) {
		before := row[0]
		row[0] = i + 1
		for j := range len(to) {
			replaced := before
			if from[i] != to[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, before+1, row[j]+1)
		}
	}
	return row[len(to)]
}
