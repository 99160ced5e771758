package run

import (
	"encoding/json"
)

// encode is JSON of our own types, which always have one.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("encoding our own type: " + err.Error())
	}
	return data
}
