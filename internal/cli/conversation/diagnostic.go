package conversation

import (
	"cmp"
	"encoding/json"
)

// A diagnostic is a line that the runner logs for operators of the cluster.
type diagnostic struct {
	Level string `json:"level"`
	Msg   string `json:"msg"`
	Err   string `json:"err"`
	Error string `json:"error"`
}

// printDiagnostic prints a line that is not an event. Of the runner's diagnostics it
// prints warnings and errors.
func (p *Printer) printDiagnostic(line []byte) {
	if p.opts.JSON {
		p.passLine(line)
		return
	}
	p.indent = ""
	var d diagnostic
	if json.Unmarshal(line, &d) != nil || d.Msg == "" {
		p.line(dim, "· ", string(line))
		return
	}
	text := d.Msg
	if cause := cmp.Or(d.Err, d.Error); cause != "" {
		text += ": " + cause
	}
	switch d.Level {
	case "WARN", "ERROR":
		p.warn(text)
	}
}
