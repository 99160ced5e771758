package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
)

// A CanonicalFunc returns the canonical form of args, for a tool whose arguments can name the same thing in several
// ways: a file by a relative path or through a symbolic link, a host in upper or lower case. The agent loop replaces
// the arguments of each call by their canonical form. Hooks, policy, approvals and digests see that form, and the tool
// is called with it.
//
// The arguments fit the schema of the tool, and so must the result. An Error refuses the
// call; the model reads it.
//
// The function must be idempotent: for its own result it returns the same bytes, unless what
// the arguments name has changed. It must not change args, and it must have no effects. It
// may read: a directory, a link. A call that is resumed uses the form recorded in the
// journal, so the tool must refuse, when it is called, arguments that are no longer
// canonical.
type CanonicalFunc func(ctx context.Context, args json.RawMessage) (json.RawMessage, *Error)

// SetArgs returns args with the members of set replaced or added. If args have these values already, it returns args
// itself. Otherwise the members of the result are sorted by name, and of two members with one name it has the last,
// which a tool reads, too.
func SetArgs(args json.RawMessage, set map[string]string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(args, &members) != nil {
		return args // no object: the schema refuses it
	}
	changed := false
	for _, name := range slices.Sorted(maps.Keys(set)) {
		var old string
		if has := members[name]; bytes.HasPrefix(has, []byte(`"`)) && json.Unmarshal(has, &old) == nil && old == set[name] {
			continue
		}
		if members == nil {
			members = map[string]json.RawMessage{}
		}
		members[name], changed = quoted(set[name]), true
	}
	if !changed {
		return args
	}
	var out bytes.Buffer
	out.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(quoted(name))
		out.WriteByte(':')
		out.Write(members[name])
	}
	out.WriteByte('}')
	return out.Bytes()
}

// quoted returns a string as JSON, without unnecessary escapes.
func quoted(s string) json.RawMessage {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always is JSON
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
