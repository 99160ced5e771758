package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// Variants are scripts of a model for some requests: the script's model "gpt-5?the tide" answers in place of "gpt-5" if
// a request contains "the tide". If the texts of several variants occur, the variant whose text occurs last in the
// request answers. The turns of a variant are counted like those of other models.
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

// plain returns messages with each content that is a list of parts replaced by the text of these parts.
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
