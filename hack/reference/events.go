package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/events"
)

// sources are the files with the types of the events, and contract those with types that some of these are made of.
const (
	sources  = "runner/events/*.go"
	contract = "runner/task/*.go"
)

const eventsHead = `# Events

Each line of a runner's standard output (` + "`kubectl logs POD`" + `) is one event, a JSON object:

` + "```json" + `
{"v":1,"n":42,"t":"2030-01-01T12:00:00Z","run":"fix","attempt":1,"type":"call.started","message":"Calling Read …","data":{…}}
` + "```" + `

| field | meaning |
|---|---|
| v | the version of this format; within it fields are only added |
| n | rises by one over all attempts of a Run; a gap is announced by ` + "`dropped`" + ` |
| t | when it happened |
| run, attempt | whose it is |
| scope | where in a tree of agents it happened; absent for the Run's own agent |
| type | one of the types below |
| message | the same in words, for people |
| data | what the type says below |

` + "`spec.log`" + ` of the Agent says how much reaches the log: Full, Steps (no deltas) or None. State comes from the Run's status, not from events.

`

// eventsPage returns the page of the events.
func eventsPage() (string, error) {
	docs, err := read(sources)
	if err != nil {
		return "", err
	}
	shared, err := read(contract)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(eventsHead)
	for _, p := range events.Payloads {
		name := reflect.TypeOf(p).Name()
		d, found := docs[name]
		if !found || d.doc == "" {
			return "", fmt.Errorf("the event %s has no comment: write one on %s in %s", p.EventType(), name, sources)
		}
		if d.fields == nil {
			d.fields = shared[d.of].fields
		}
		describe(&b, string(p.EventType()), name, d)
	}
	return b.String(), nil
}

// read returns the types in the files that match a pattern.
func read(pattern string) (map[string]documented, error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	docs := map[string]documented{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		maps.Copy(docs, structs(file))
	}
	return docs, nil
}

// A documented struct is its doc and its fields as they were written, or the type of the contract that has them.
type documented struct {
	doc    string
	of     string
	fields []*ast.Field
}

func structs(file *ast.File) map[string]documented {
	out := map[string]documented{}
	for _, d := range file.Decls {
		g, is := d.(*ast.GenDecl)
		if !is || len(g.Specs) != 1 {
			continue
		}
		spec, isType := g.Specs[0].(*ast.TypeSpec)
		if !isType {
			continue
		}
		switch s := spec.Type.(type) {
		case *ast.StructType:
			out[spec.Name.Name] = documented{doc: oneLine(g.Doc), fields: s.Fields.List}
		case *ast.SelectorExpr:
			out[spec.Name.Name] = documented{doc: oneLine(g.Doc), of: s.Sel.Name}
		}
	}
	return out
}

// describe writes one type of event.
func describe(b *strings.Builder, kind, name string, d documented) {
	fmt.Fprintf(b, "## %s\n\n%s\n\n", kind, sentence(strings.TrimPrefix(d.doc, name+" ")))
	for _, f := range d.fields {
		key, _, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
		note := oneLine(f.Comment)
		if f.Doc != nil {
			note = strings.TrimPrefix(oneLine(f.Doc), f.Names[0].Name+" is ")
		}
		if note != "" {
			note = ": " + note
		}
		fmt.Fprintf(b, "- `%s`%s\n", key, note)
	}
	b.WriteString("\n")
}
