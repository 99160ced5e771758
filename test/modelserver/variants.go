package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// Variants are dialogues of one model for some requests: the script's model
// "gpt-5?the tide" answers in the place of "gpt-5" where a request contains "the
// tide". Of several it is the one whose text comes last in the request. The
// turns of a variant are counted as all others are.
type variants map[string][]string // texts by model

func variantsOf(names []string) variants {
	v := variants{}
	for _, name := range names {
		if model, text, ok := strings.Cut(name, "?"); ok {
			v[model] = append(v[model], text)
		}
	}
	return v
}

// choose puts the name of the variant into a request of chat completions, and
// its texts into the one form that scripts read.
func (v variants) choose(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			body = v.rename(body)
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		next.ServeHTTP(w, r)
	})
}

func (v variants) rename(body []byte) []byte {
	var fields map[string]json.RawMessage
	var model, chosen string
	if json.Unmarshal(body, &fields) != nil || json.Unmarshal(fields["model"], &model) != nil {
		return body // the script says what is wrong
	}
	fields["messages"] = plain(fields["messages"])
	last := -1
	for _, text := range v[model] {
		if at := bytes.LastIndex(fields["messages"], []byte(text)); at > last {
			last, chosen = at, model+"?"+text
		}
	}
	if last >= 0 {
		fields["model"] = encode(chosen)
	}
	return encode(fields)
}

// plain is messages whose content, where it is a list of parts, is the text of
// them.
func plain(messages json.RawMessage) json.RawMessage {
	var list []map[string]json.RawMessage
	if json.Unmarshal(messages, &list) != nil {
		return messages
	}
	for _, m := range list {
		if bytes.HasPrefix(bytes.TrimSpace(m["content"]), []byte("[")) {
			m["content"] = encode(text(blocks(m["content"])))
		}
	}
	return encode(list)
}
