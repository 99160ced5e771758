package conversation

import "bytes"

// Write prints what is complete of the log so far, and returns the errors of Options.Out.
func (p *Printer) Write(log []byte) (int, error) {
	for rest := log; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			p.keep(rest)
			break
		}
		line := rest[:end]
		rest = rest[end+1:]
		if p.isTooLong {
			p.isTooLong = false
			continue
		}
		if len(p.partial) > 0 {
			line = append(p.partial, line...)
			p.partial = p.partial[:0]
		}
		p.printLine(line)
	}
	p.flush()
	return len(log), p.err
}

// keep keeps the beginning of a line. A custom runner may write lines that do not end.
func (p *Printer) keep(beginning []byte) {
	const longest = 16 << 20 // far more than any event
	switch {
	case p.isTooLong:
	case len(p.partial)+len(beginning) > longest:
		p.partial, p.isTooLong = nil, true
		if !p.opts.JSON {
			p.indent = ""
			p.warn("A line of the log is longer than 16 MiB and is left out.")
		}
	default:
		p.partial = append(p.partial, beginning...)
	}
}

// Reconnect forgets the beginning of a line that the end of a stream cut. The line comes
// whole when the log is read again.
func (p *Printer) Reconnect() { p.partial, p.isTooLong = p.partial[:0], false }

// EndLog prints what the end of a pod's log cut, so that the log of the next pod begins with a line
// of its own.
func (p *Printer) EndLog() error {
	if len(p.partial) > 0 {
		p.printLine(p.partial)
		p.partial = nil
	}
	p.flush()
	return p.err
}
