package task

import (
	"bytes"
	"encoding/json"
)

// Operators of before send firstStep, a number of turns, in what earlier attempts were refused. It names
// no step, so it is read and dropped.

// UnmarshalJSON reads a tool, also from an operator of before.
func (d *DeniedTool) UnmarshalJSON(data []byte) error {
	type fields DeniedTool
	return decodeStrictly(data, &struct {
		*fields
		FirstStep int64 `json:"firstStep"`
	}{fields: (*fields)(d)})
}

// UnmarshalJSON reads a host, also from an operator of before.
func (h *RefusedHost) UnmarshalJSON(data []byte) error {
	type fields RefusedHost
	return decodeStrictly(data, &struct {
		*fields
		FirstStep int64 `json:"firstStep"`
	}{fields: (*fields)(h)})
}

// decodeStrictly refuses unknown fields, as a runner does everywhere in a task.
func decodeStrictly(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
