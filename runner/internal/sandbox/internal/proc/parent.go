package proc

// Descends reports whether a process is, or comes from, another one. One that is
// gone counts as one that does: nobody can say otherwise.
func Descends(id, from int) bool {
	var line [1024]byte
	for range 1 << 16 { // deeper than any tree; ids may be reused while this looks
		if id == from {
			return true
		}
		if id <= 0 {
			return false
		}
		p, ok := stat(id, line[:])
		if !ok {
			return true
		}
		id = p.Parent
	}
	return true
}
