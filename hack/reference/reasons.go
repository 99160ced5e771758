package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

const reasonsHead = `# Conditions and reasons

Each object says in its conditions what is true of it, why in one word (the reason), and in the message the cause and what
to do. ` + "`kubectl get`" + ` prints the reason, ` + "`kubectl get -o wide`" + ` the message too. This page is made from
` + "`api/v1alpha1/conditions.go`" + ` (` + "`make generate`" + `).
`

// reasons writes the page of the conditions and reasons that Go constants document. The doc comment of a constant is its
// name, the status of its condition in parentheses, a colon, the cause, and after "Remedy:" what to do.
func reasons(source []byte) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "conditions.go", source, parser.ParseComments)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(reasonsHead)
	for _, d := range file.Decls {
		group, isGroup := d.(*ast.GenDecl)
		if !isGroup || group.Tok != token.CONST || group.Doc == nil {
			continue
		}
		if err := reasonTable(&b, group); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

func reasonTable(b *strings.Builder, group *ast.GenDecl) error {
	title, text, _ := strings.Cut(oneLine(group.Doc), ".")
	fmt.Fprintf(b, "\n## %s\n\n", strings.TrimSuffix(title, ":"))
	if text = strings.TrimSpace(text); text != "" {
		fmt.Fprintf(b, "%s\n\n", text)
	}
	b.WriteString("| name | meaning | what to do |\n|---|---|---|\n")
	for _, s := range group.Specs {
		spec, isValue := s.(*ast.ValueSpec)
		if !isValue || len(spec.Values) != 1 {
			continue
		}
		literal, isLiteral := spec.Values[0].(*ast.BasicLit)
		if !isLiteral {
			continue
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			return err
		}
		if err := reasonRow(b, spec.Names[0].Name, value, oneLine(spec.Doc)); err != nil {
			return err
		}
	}
	return nil
}

// reasonRow writes the row of a constant. A reason without a status, a cause or a remedy is an error.
func reasonRow(b *strings.Builder, name, value, doc string) error {
	status, cause, remedy := parseReason(doc)
	if strings.HasPrefix(name, "Reason") && (status == "" || cause == "" || remedy == "") {
		return fmt.Errorf("the comment of %s has no status, cause or remedy: write %s (False): the cause. Remedy: What to do", name, name)
	}
	if status != "" {
		status = " (" + status + ")"
	}
	fmt.Fprintf(b, "| `%s`%s | %s | %s |\n", value, status, cell(cause), cell(remedy))
	return nil
}

// reasonDoc is the form of a doc comment: ReasonX (False): cause. Remedy: what to do.
var reasonDoc = regexp.MustCompile(`^\w+(?: \((\w+(?: or \w+)?)\))?(?:, [^:]*)?:? (.*)$`)

func parseReason(doc string) (status, cause, remedy string) {
	doc, remedy, _ = strings.Cut(doc, "Remedy:")
	if m := reasonDoc.FindStringSubmatch(strings.TrimSpace(doc)); m != nil {
		status, cause = m[1], m[2]
	}
	return status, sentence(cmp.Or(cause, doc)), sentence(remedy)
}

func sentence(text string) string {
	text = strings.TrimSpace(text)
	if word, _, _ := strings.Cut(text, " "); text == "" || strings.Contains(word, ".") {
		return text // nothing, or the name of a field
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func oneLine(doc *ast.CommentGroup) string {
	if doc == nil {
		return ""
	}
	return strings.Join(strings.Fields(doc.Text()), " ")
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
