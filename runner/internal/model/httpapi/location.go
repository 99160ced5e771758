package httpapi

import (
	"fmt"
	"strings"
)

// locate finds the field that a report is about. FastAPI and similar servers name it separately, and not in the
// message.
func (r *errorReport) locate(v map[string]any) {
	if param, ok := v["param"].(string); ok && param != "" {
		r.where = append(r.where, param)
	}
	list, _ := v["loc"].([]any)
	var path []string
	for _, token := range list {
		path = append(path, fmt.Sprint(token))
	}
	if len(path) == 0 {
		return
	}
	where := strings.TrimPrefix(strings.Join(path, "."), "body.")
	r.where = append(r.where, where)
	if text, ok := v["msg"].(string); ok && r.message == "" {
		r.message = where + ": " + text
	}
}
