package web

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/weburl"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// canonicalRequest is the [tool.CanonicalFunc] of HTTPRequest: policies see the
// URL, the method and the names of headers as they are sent.
func canonicalRequest(ctx context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
	return canonical(ctx, args, func(in *requestIn) (string, error) {
		written := in.URL
		u, err := weburl.Parse(written)
		if err != nil {
			return written, &requestError{err.Error()}
		}
		in.URL, in.Method = u.String(), strings.ToUpper(in.Method)
		in.Headers, err = canonicalHeaders(in.Headers)
		return written, err
	})
}

// canonicalBrowse is the [tool.CanonicalFunc] of Browse.
func canonicalBrowse(ctx context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
	return canonical(ctx, args, func(in *browseIn) (string, error) {
		written := in.URL
		u, err := weburl.Parse(written)
		if err != nil {
			return written, &requestError{err.Error()}
		}
		in.URL = u.String()
		return written, nil
	})
}

// canonical applies rewrite, which also returns the original URL, and encodes all
// arguments again, so that they have only one form.
func canonical[In any](ctx context.Context, args json.RawMessage, rewrite func(*In) (string, error)) (json.RawMessage, *tool.Error) {
	var in In
	if json.Unmarshal(args, &in) != nil {
		return args, nil // the schema of the tool refuses it
	}
	if written, err := rewrite(&in); err != nil {
		result, _ := failed(context.WithoutCancel(ctx), written, err)
		return nil, result.Error
	}
	return encode(in), nil
}

// canonicalHeaders returns headers with canonical names. Two spellings of one name
// are refused, because implementations differ in which value they use.
func canonicalHeaders(written map[string]string) (map[string]string, error) {
	if len(written) == 0 {
		return nil, nil
	}
	all := make(map[string]string, len(written))
	for _, name := range slices.Sorted(maps.Keys(written)) {
		known := http.CanonicalHeaderKey(strings.TrimSpace(name))
		if _, twice := all[known]; twice {
			return nil, &requestError{fmt.Sprintf("the header %s is given twice; give it once", clip(known, 80))}
		}
		all[known] = strings.TrimSpace(written[name])
	}
	return all, nil
}
