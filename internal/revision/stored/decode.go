package stored

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Version is the version of the form that this operator writes.
const Version = 1

// The decoders of each kind, by version.
var (
	agents    = decoders[Agent]{1: decodeStrictly[Agent]}
	workflows = decoders[Workflow]{1: decodeStrictly[Workflow]}
)

// DecodeAgent decodes a document of any version that this operator reads. The error is
// an *UnsupportedError if the operator does not understand all of it.
func DecodeAgent(data []byte) (Agent, error) { return agents.decode("stored revision", data) }

// DecodeWorkflow is DecodeAgent for a Workflow.
func DecodeWorkflow(data []byte) (Workflow, error) { return workflows.decode("stored revision", data) }

// DecodeVersion decodes a document of another versioned form whose versions 1 to newest
// have the same Go type. what names the form in errors.
func DecodeVersion[T any](what string, newest int, data []byte) (T, error) {
	d := decoders[T]{}
	for v := range newest {
		d[v+1] = decodeStrictly[T]
	}
	return d.decode(what, data)
}

// decoders decode the documents of one kind, by version. A decoder of an old version
// converts to the newest.
type decoders[T any] map[int]func([]byte) (T, error)

func (d decoders[T]) decode(what string, data []byte) (T, error) {
	var none T
	var header struct {
		Version int `json:"version"`
	}
	versions := slices.Sorted(maps.Keys(d))
	unsupported := &UnsupportedError{What: what, Oldest: versions[0], Newest: versions[len(versions)-1]}
	if unsupported.Err = json.Unmarshal(data, &header); unsupported.Err != nil {
		return none, unsupported
	}
	unsupported.Version = header.Version
	decode := d[header.Version]
	if decode == nil {
		return none, unsupported
	}
	out, err := decode(data)
	if err != nil {
		unsupported.Err = err
		return none, unsupported
	}
	return out, nil
}

// decodeStrictly decodes valid JSON. An unknown field is an error: only a newer
// operator can have written it, and to ignore it could change what the Run does.
func decodeStrictly[T any](data []byte) (T, error) {
	var out T
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(&out)
	return out, err
}

// An UnsupportedError is a document that this operator does not understand, or not all
// of it.
type UnsupportedError struct {
	// What names the form, Version is the document's, Oldest and Newest are the versions
	// that this operator reads.
	What                    string
	Version, Oldest, Newest int
	// Err is what could not be decoded in a version that the operator reads.
	Err error
}

// IsNewer reports whether a newer operator wrote the document. It can read it still.
func (e *UnsupportedError) IsNewer() bool { return e.Version >= e.Oldest }

func (e *UnsupportedError) Error() string {
	switch {
	case e.Err != nil:
		return fmt.Sprintf("the %s (version %d) has content that this operator does not know: %v", e.What, e.Version, e.Err)
	case e.IsNewer():
		return fmt.Sprintf("the %s has version %d, of a newer operator; this operator reads versions up to %d", e.What, e.Version, e.Newest)
	}
	return fmt.Sprintf("the %s has version %d, of an older operator; this operator reads versions from %d", e.What, e.Version, e.Oldest)
}

func (e *UnsupportedError) Unwrap() error { return e.Err }
