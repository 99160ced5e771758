package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A fault is one change of a file.
type fault struct {
	file       string // from the root of the repository
	function   string
	line       string // the changed line, as it was
	begin, end int    // what is replaced, in bytes
	old, new   string
}

// String describes the fault without its line number, so that it is the same after changes elsewhere in the file.
func (f fault) String() string {
	return fmt.Sprintf("%s %s: %s -> %s IN %s", f.file, f.function, oneLine(f.old), oneLine(f.new), f.line)
}

// undone returns the fault that changes nothing.
func (f fault) undone() fault {
	f.new = f.old
	return f
}

func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return "nothing"
	}
	return text
}

// apply returns the text of a file with the fault.
func (f fault) apply(text []byte) []byte {
	return append(append(append([]byte(nil), text[:f.begin]...), f.new...), text[f.end:]...)
}

// faultsOfFile returns the faults that a Go file may have.
func faultsOfFile(path string) ([]fault, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a file: %w", err)
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parsing: %w", err)
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}
	c := collector{path: filepath.ToSlash(path), text: string(text), at: func(p token.Pos) int { return set.Position(p).Offset }}
	for _, d := range file.Decls {
		if f, is := d.(*ast.FuncDecl); is && f.Body != nil {
			c.function = f.Name.Name
			ast.Inspect(f.Body, c.visit)
		}
	}
	return c.faults, nil
}

// A collector finds faults in a function.
type collector struct {
	path, text, function string
	at                   func(token.Pos) int
	faults               []fault
}

// swapped are the operators that a fault puts in place of others.
var swapped = map[token.Token]string{
	token.LAND: "||", token.LOR: "&&", token.EQL: "!=", token.NEQ: "==",
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">",
	token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*",
	token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+=", token.INC: "--", token.DEC: "++",
}

func (c *collector) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		c.operator(n.OpPos, n.Op)
	case *ast.AssignStmt:
		c.operator(n.TokPos, n.Tok)
	case *ast.IncDecStmt:
		c.operator(n.TokPos, n.Tok)
	case *ast.IfStmt:
		cond := c.text[c.at(n.Cond.Pos()):c.at(n.Cond.End())]
		c.add(n.Cond.Pos(), n.Cond.End(), "false && ("+cond+")")
		c.add(n.Cond.Pos(), n.Cond.End(), "true || ("+cond+")")
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			c.add(n.Pos(), n.X.Pos(), "")
		}
	case *ast.ExprStmt:
		c.add(n.Pos(), n.End(), "")
	case *ast.Ident:
		if other := map[string]string{"true": "false", "false": "true"}[n.Name]; other != "" {
			c.add(n.Pos(), n.End(), other)
		}
	case *ast.BasicLit:
		if value, err := strconv.ParseInt(n.Value, 0, 64); n.Kind == token.INT && err == nil {
			c.add(n.Pos(), n.End(), strconv.FormatInt(value+1, 10))
		}
	}
	return true
}

func (c *collector) operator(at token.Pos, op token.Token) {
	if other := swapped[op]; other != "" {
		c.add(at, at+token.Pos(len(op.String())), other)
	}
}

func (c *collector) add(begin, end token.Pos, replacement string) {
	from, to := c.at(begin), c.at(end)
	c.faults = append(c.faults, fault{
		file: c.path, function: c.function, line: lineAt(c.text, from),
		begin: from, end: to, old: c.text[from:to], new: replacement,
	})
}

// lineAt returns the line of an offset, without the white space around it.
func lineAt(text string, offset int) string {
	begin := strings.LastIndexByte(text[:offset], '\n') + 1
	line, _, _ := strings.Cut(text[begin:], "\n")
	return strings.TrimSpace(line)
}
