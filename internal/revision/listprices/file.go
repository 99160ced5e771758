package listprices

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the catalog
	"encoding/hex"
	"encoding/json"
	"errors"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// catalog is written by make catalog: a header, and a row in each other line.
//
//go:embed catalog.jsonl
var catalog []byte

// A Header is the first line of the catalog.
type Header struct {
	Source string `json:"source"`
	Date   string `json:"date"`
	// Sum is the SHA-256 of the other lines.
	Sum     string `json:"sum"`
	License string `json:"license"`
}

// A Row is the prices of a model.
type Row struct {
	// Provider and Model are the names of the package.
	Provider string `json:"provider"`
	Model    string `json:"model"`
	// Match has the alternatives of [modelname.Fits].
	Match  [][]string  `json:"match"`
	Prices task.Prices `json:"prices"`
	// Source is the address of the provider's page, and Date when it was read. Empty: those of the list.
	Source string `json:"source,omitempty"`
	Date   string `json:"date,omitempty"`
}

var errSum = errors.New("the rows were changed by hand: run make catalog")

// Encode returns the file of the catalog.
func Encode(h Header, rows []Row) ([]byte, error) {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	for _, r := range rows {
		if err := e.Encode(r); err != nil {
			return nil, err
		}
	}
	sum := sha256.Sum256(body.Bytes())
	h.Sum = hex.EncodeToString(sum[:])
	head, err := json.Marshal(h)
	return append(append(head, '\n'), body.Bytes()...), err
}

// decode reads the file of the catalog.
func decode(data []byte) (Header, []Row, error) {
	var h Header
	head, body, _ := bytes.Cut(data, []byte("\n"))
	if err := json.Unmarshal(head, &h); err != nil {
		return h, nil, err
	}
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != h.Sum {
		return h, nil, errSum
	}
	var rows []Row
	for line := range bytes.Lines(body) {
		var r Row
		if err := json.Unmarshal(line, &r); err != nil {
			return h, nil, err
		}
		rows = append(rows, r)
	}
	return h, rows, nil
}

type list struct {
	Header
	rows map[string][]Row // by provider of the package
}

// builtin returns the embedded catalog, which is read when it is first needed.
var builtin = sync.OnceValues(func() (list, error) {
	h, rows, err := decode(catalog)
	out := list{h, map[string][]Row{}}
	for _, r := range rows {
		out.rows[r.Provider] = append(out.rows[r.Provider], r)
	}
	return out, err
})
