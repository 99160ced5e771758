package httpapi

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/model"
)

var aboutTools = pattern(`\btools?\b|tool[_-]|\bfunctions?\b|function[_ -]?(call|declaration)`)

func (r *refusal) hasTools() bool { return len(r.Tools) > 0 && aboutTools().MatchString(r.lower) }

// position finds the index of a tool in a message, and the part of the tool that is meant.
var position = []func() *regexp.Regexp{
	pattern(`function_?declarations[.\[](\d+)\]?([.\[/\w]*)`), // Gemini
	pattern(`\btools[.\[/](\d+)\]?([.\[/\w]*)`),
}

// toolAtPosition recognizes a tool by its place in the request: tools.3.custom.input_schema at
// Anthropic, tools[3].function.parameters elsewhere.
func (r *refusal) toolAtPosition() (model.Refusal, bool) {
	for _, p := range position {
		m := p().FindStringSubmatch(r.lower)
		if m == nil {
			continue
		}
		i, err := strconv.Atoi(m[1])
		if err != nil || i >= len(r.Tools) {
			continue
		}
		return model.Refusal{Cause: model.CauseTool, Tool: r.Tools[i]}, true
	}
	return model.Refusal{}, false
}

var (
	excess  = pattern(`too (many|long|large)|at most|no more than|\bmax|limit|exceed|more than|up to|fewer|less than`)
	notMany = pattern(`character|\bnames?\b|description|token|depth|nest|max_\w+`)
)

// tooManyTools recognizes a limit below the number of tools that were sent.
func (r *refusal) tooManyTools() (model.Refusal, bool) {
	if limit := r.stated(); limit > 0 {
		return model.Refusal{Cause: model.CauseTooManyTools, Limit: limit}, true
	}
	if !r.hasTools() || !excess().MatchString(r.lower) || notMany().MatchString(strings.ReplaceAll(r.lower, "array_above_max_length", "")) {
		return model.Refusal{}, false
	}
	limit := int64(0)
	for _, n := range numbers(r.report.message) {
		if n > 0 && n < int64(len(r.Tools)) {
			limit = max(limit, n)
		}
	}
	found := limit > 0 || strings.Contains(r.lower, "too many")
	return model.Refusal{Cause: model.CauseTooManyTools, Limit: limit}, found
}

// minMany is the smallest number of tools that can be recognized in a message by its value.
const minMany = 16

// stated returns the limit in a message that has exactly two numbers: the number of sent tools, and a smaller one;
// otherwise 0.
func (r *refusal) stated() int64 {
	said, sent := numbers(r.report.message), int64(len(r.Tools))
	if sent < minMany || len(said) != 2 || r.status >= http.StatusInternalServerError || !slices.Contains(said, sent) {
		return 0
	}
	limit := min(said[0], said[1])
	if limit == sent || limit == 0 {
		return 0
	}
	return limit
}

// isConditional are the words of a server that does something under a condition.
var isConditional = pattern(`\b(unless|only|while|without|off)\b`)

// toolsWithReasoning recognizes a model that takes tools only while it does not reason.
func (r *refusal) toolsWithReasoning() (model.Refusal, bool) {
	about := aboutThinking().MatchString(r.lower) || strings.Contains(r.lower, "reasoning") || strings.Contains(r.lower, "reasons")
	isCondition := r.status < http.StatusInternalServerError && isConditional().MatchString(r.lower)
	found := about && r.hasTools() && (r.denies() || isCondition)
	return model.Refusal{Cause: model.CauseToolsWithReasoning}, found
}

var (
	aboutSchema  = pattern(`schema|parameters|grammar|function.?declaration|draft 20`)
	aboutGrammar = pattern(`json schema|grammar`)
)

// namedTool recognizes the name of a tool, in quotes or after the word function or tool.
func (r *refusal) namedTool() (model.Refusal, bool) {
	if !r.hasTools() && !aboutSchema().MatchString(r.lower) {
		return model.Refusal{}, false
	}
	longest := ""
	for _, name := range r.Tools {
		if len(name) > len(longest) && isNamed(r.text, name) {
			longest = name
		}
	}
	return model.Refusal{Cause: model.CauseTool, Tool: longest}, longest != ""
}

// isNamed reports whether a text names a tool: in quotes, after the word function or tool, or alone if its name is not
// an ordinary word.
func isNamed(text, name string) bool {
	quoted := regexp.QuoteMeta(name)
	named := "(['\"`‘“]|(?i:function|tool)(?i:s)?:? )" + quoted + "(['\"`’”]|[^\\w-]|$)"
	if strings.ContainsAny(name, "_-") { // it is no word
		named += `|(^|[\s(\[])` + quoted + `([\s:,.)\]]|$)`
	}
	return regexp.MustCompile(named).MatchString(text)
}

// anyTool recognizes the schema of a tool without the name of the tool.
func (r *refusal) anyTool() (model.Refusal, bool) {
	about := aboutSchema
	if r.status >= http.StatusInternalServerError {
		about = aboutGrammar
	}
	found := len(r.Tools) > 0 && about().MatchString(r.lower) && !strings.Contains(r.lower, "response_format")
	return model.Refusal{Cause: model.CauseTool}, found
}

// noTools recognizes a model, or a server, that takes no tools at all.
func (r *refusal) noTools() (model.Refusal, bool) {
	return model.Refusal{Cause: model.CauseNoTools}, r.hasTools() && r.denies()
}
