package stored

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestDecodeRefusesWhatTheOperatorDoesNotKnow(t *testing.T) {
	const rest = `"name":"a","workspace":{}`
	cases := map[string]struct {
		data    string
		version int
		newer   bool
		says    string
	}{
		"a newer version":           {`{"version":3,` + rest + `}`, 3, true, "the stored revision has version 3, of a newer operator; this operator reads versions up to 1"},
		"a newer version, reshaped": {`{"version":3,"agent":["a"]}`, 3, true, "version 3, of a newer operator"},
		"no version":                {`{` + rest + `}`, 0, false, "has version 0, of an older operator; this operator reads versions from 1"},
		"an unknown field":          {`{"version":1,` + rest + `,"gpu":1}`, 1, true, `unknown field "gpu"`},
		"an unknown field below":    {`{"version":1,"name":"a","workspace":{"snapshots":true}}`, 1, true, `unknown field "snapshots"`},
		"an unknown value":          {`{"version":1,"name":"a","workspace":{"retain":"Sometimes"}}`, 1, true, `unknown value "Sometimes" of retain`},
		"another type":              {`{"version":1,"name":7}`, 1, true, "cannot unmarshal number"},
		"two documents":             {`{"version":1,` + rest + `}{}`, 0, false, "after top-level value"},
		"a version that is none":    {`{"version":"1"}`, 0, false, "cannot unmarshal string"},
		"nothing":                   {``, 0, false, "unexpected end"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeAgent([]byte(tc.data))
			unsupported, is := errors.AsType[*UnsupportedError](err)
			if !is || got.Name != "" {
				t.Fatalf("DecodeAgent() = %+v, %v; want nothing and an UnsupportedError", got, err)
			}
			if unsupported.Version != tc.version || unsupported.IsNewer() != tc.newer || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("version %d, newer %t: %v", unsupported.Version, unsupported.IsNewer(), err)
			}
		})
	}
	if _, err := DecodeAgent([]byte(`{"version":1,` + rest + `}`)); err != nil {
		t.Errorf("a known document is refused: %v", err)
	}
	if _, err := DecodeWorkflow([]byte(`{"version":1,"name":"w","nodes":[],"input":{"fields":[{"name":"x","type":"Date"}]}}`)); err == nil || !strings.Contains(err.Error(), `unknown type "Date"`) {
		t.Errorf("a Workflow with an unknown type: %v", err)
	}
}

// Version 1 of a kind that exists in this test only counts its limit in minutes, version
// 2 in seconds.
type (
	limitV1 struct {
		Version int   `json:"version"`
		Minutes int64 `json:"minutes"`
	}
	limitV2 struct {
		Version int   `json:"version"`
		Seconds int64 `json:"seconds"`
	}
)

func TestAnOlderVersionIsConverted(t *testing.T) {
	limits := decoders[limitV2]{
		1: func(data []byte) (limitV2, error) {
			old, err := decodeStrictly[limitV1](data)
			return limitV2{Version: 2, Seconds: 60 * old.Minutes}, err
		},
		2: decodeStrictly[limitV2],
	}
	for _, data := range []string{`{"version":1,"minutes":5}`, `{"version":2,"seconds":300}`} {
		got, err := limits.decode("limit", []byte(data))
		if err != nil || got != (limitV2{2, 300}) {
			t.Errorf("decode(%s) = %+v, %v", data, got, err)
		}
	}
	if got, err := limits.decode("limit", []byte(`{"version":1,"seconds":300}`)); err == nil {
		t.Errorf("a field of version 2 in version 1 is read as %+v", got)
	}
}

func TestVersionsOfAnotherForm(t *testing.T) {
	for version, known := range map[int]bool{0: false, 1: true, 2: true, 3: false} {
		_, err := DecodeVersion[limitV2]("limit", 2, fmt.Appendf(nil, `{"version":%d,"seconds":1}`, version))
		if (err == nil) != known {
			t.Errorf("version %d: %v", version, err)
		}
	}
}
