package httpapi

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/model"
)

// pattern returns a regular expression that is compiled when it is first needed: most runners never
// see a refusal.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// A refusal is an errorReport together with the request that it is about.
type refusal struct {
	Sent
	report *errorReport
	status int
	// text has all texts of the report, lower the same in lower case. message is only the text of its message, because
	// some providers name each error invalid_request_error.
	text, lower, message string
}

// newRefusal returns the refusal of a request.
func newRefusal(sent Sent, status int, r *errorReport) *refusal {
	text := strings.Join(append([]string{r.message}, append(r.where, r.names...)...), "\n")
	return &refusal{Sent: sent, report: r, status: status, text: text, lower: strings.ToLower(text), message: strings.ToLower(r.message)}
}

// A rule recognizes one cause.
type rule func(*refusal) (model.Refusal, bool)

// cause returns the first of the causes that rules recognize.
func (r *refusal) cause(rules ...rule) model.Refusal {
	for _, one := range rules {
		if found, ok := one(r); ok {
			return found
		}
	}
	return model.Refusal{}
}

// requestRules recognize what is wrong with a request, most specific first.
var requestRules = []rule{
	(*refusal).toolAtPosition, (*refusal).tooManyTools, (*refusal).reasoningMissing, (*refusal).toolsWithReasoning,
	(*refusal).namedTool, (*refusal).parameter, (*refusal).noTools, (*refusal).roles, (*refusal).anyTool,
	(*refusal).otherAPI, (*refusal).inferenceProfile, (*refusal).unknownModel, (*refusal).serverSettings,
}

// negative matches words with which servers say that they do not support something.
var negative = pattern(`not (currently |yet |be )?support|unsupported|n['’]t (currently )?support|not (enabled|available|allowed|permitted|implemented|configured|compatible)|no endpoints|\brequires?\b|must be (set|enabled)|disabled|cannot|can['’]t|incompatible`)

// plainNegative matches those words of negative that do not occur in messages about failures.
var plainNegative = pattern(`not (currently |yet |be )?support|unsupported|n['’]t (currently )?support|not implemented|must be enabled`)

// denies reports whether the message says that something is not supported.
func (r *refusal) denies() bool {
	if r.status >= http.StatusInternalServerError {
		return plainNegative().MatchString(r.lower) || flag().MatchString(r.lower)
	}
	return negative().MatchString(r.lower)
}

var (
	aboutReasoning = pattern(`reasoning_content|reasoning content|reasoning_details|thinking block|thinking mode|\x60thinking\x60|thinking must`)
	isMissing      = pattern(`missing|must|mandatory|required|expected|passed back|pass back|without|provide|\bneeds?\b|empty|lack|absent`)
	isUnwanted     = pattern(`unsupported|not support|n['’]t support|extra|unknown|unexpected|unrecognized|not permitted|not allowed|forbidden|modified`)
	isUnknown      = pattern(`unsupported|not support|n['’]t support|extra|unknown|unexpected|unrecognized|not permitted|not allowed|invalid|not valid|forbidden|modified`)
)

// reasoningMissing recognizes a provider that wants the reasoning of earlier answers back.
func (r *refusal) reasoningMissing() (model.Refusal, bool) {
	found := aboutReasoning().MatchString(r.lower) && isMissing().MatchString(r.lower) && !isUnwanted().MatchString(r.message)
	return model.Refusal{Cause: model.CauseReasoningMissing}, found
}

var (
	aboutRoles    = pattern(`\broles?\b`)
	aboutMessages = pattern(`\broles?\b|\bmessages?\b|\bturns?\b|tool_call_ids?|tool_use|conversation|calls and responses`)
	inOrder       = pattern(`alternat|\bafter\b|\bbefore\b|order of|in order\b|followed by|follows|preced|behind|consecutive|must (end|start|begin)|(first|last|next|previous) (message|role)|expected .*role|at the beginning|only .*roles|system role|role .*not support|number of .*calls and`)
)

// roles recognizes an order of messages that a provider or a chat template does not take.
func (r *refusal) roles() (model.Refusal, bool) {
	about := aboutMessages
	if r.status >= http.StatusInternalServerError {
		about = aboutRoles
	}
	return model.Refusal{Cause: model.CauseRoles}, about().MatchString(r.lower) && inOrder().MatchString(r.lower)
}

// word matches a name of a field with its surroundings.
var word = pattern("(['\"`\\[]?)([A-Za-z_][A-Za-z0-9_]*(?:[.\\[/][A-Za-z0-9_\\]]+)*)")

// plain are fields whose names are words of any message: they count in quotes only.
var plain = []string{"reasoning", "thinking", "usage", "user", "stop", "seed", "store", "metadata", "provider", "n"}

// parameter recognizes a field of the request.
func (r *refusal) parameter() (model.Refusal, bool) {
	for _, field := range r.MessageFields {
		if (isUnknown().MatchString(r.message) || r.isAt(field)) && r.mentions(field) {
			return model.Refusal{Cause: model.CauseParameter, Field: field}, true
		}
	}
	for _, m := range word().FindAllStringSubmatch(r.text, -1) {
		field := r.field(m[2])
		isName := m[1] != "" || m[2] != field || slices.Contains(r.report.where, field) || !slices.Contains(plain, field)
		if field == "" || !isName {
			continue
		}
		return model.Refusal{Cause: model.CauseParameter, Field: field, Setting: r.Settings[field], Instead: r.instead(field)}, true
	}
	if instead := r.instead(r.OutputField); instead != "" {
		return model.Refusal{Cause: model.CauseParameter, Field: r.OutputField, Setting: r.Settings[r.OutputField], Instead: instead}, true
	}
	return r.reasoningLevel()
}

var aboutThinking = pattern(`\breasoning\b|\bthinking\b|\bthink\b`)

// reasoningLevel recognizes a refusal by a model that does not reason, or not at the level that is
// set, in a message that does not name the field.
func (r *refusal) reasoningLevel() (model.Refusal, bool) {
	if !aboutThinking().MatchString(r.message) || !negative().MatchString(r.message) && !isUnknown().MatchString(r.message) {
		return model.Refusal{}, false
	}
	for _, field := range slices.Sorted(maps.Keys(r.Settings)) {
		if r.Settings[field] == SettingReasoning {
			return model.Refusal{Cause: model.CauseParameter, Field: field, Setting: SettingReasoning}, true
		}
	}
	return model.Refusal{}, false
}

// unknownField is parameter for a server that reports an unknown field.
func (r *refusal) unknownField() (model.Refusal, bool) {
	if !isUnknown().MatchString(r.message) {
		return model.Refusal{}, false
	}
	return r.parameter()
}

// field returns the field of the request that a name belongs to: temperature, body.temperature or
// thinking.budget_tokens.
func (r *refusal) field(name string) string {
	name = strings.TrimPrefix(name, "body.")
	top := strings.FieldsFunc(name, func(c rune) bool { return strings.ContainsRune(".[/", c) })[0]
	if _, ok := r.Settings[top]; ok {
		return top
	}
	return ""
}

// isAt reports whether the report names the field separately from its message.
func (r *refusal) isAt(field string) bool {
	return slices.ContainsFunc(r.report.where, func(path string) bool { return strings.HasSuffix(path, "."+field) })
}

// mentions reports whether a name ends the path of a field in the message.
func (r *refusal) mentions(field string) bool {
	for _, m := range word().FindAllStringSubmatch(r.text, -1) {
		path := strings.FieldsFunc(m[2], func(c rune) bool { return strings.ContainsRune(".[]/", c) })
		if path[len(path)-1] == field && (len(path) > 1 || m[1] != "" || !slices.Contains(plain, field)) {
			return true
		}
	}
	return false
}

// outputFields are the names that APIs have for the limit of the answer.
var outputFields = []string{"max_completion_tokens", "max_output_tokens", "max_tokens"}

// instead returns the field that the message names as replacement for the limit of the answer.
func (r *refusal) instead(field string) string {
	if field == "" || field != r.OutputField {
		return ""
	}
	for _, other := range outputFields {
		if other != field && regexp.MustCompile(`\b`+other+`\b`).MatchString(r.lower) {
			return other
		}
	}
	return ""
}

var aboutAPI = pattern(`v1/(responses|completions|embeddings|messages|chat)|responses api|chat model`)

// otherAPI recognizes a model that has another API.
func (r *refusal) otherAPI() (model.Refusal, bool) {
	found := aboutAPI().MatchString(r.lower) && (negative().MatchString(r.lower) || strings.Contains(r.lower, "only"))
	return model.Refusal{Cause: model.CauseOtherAPI}, found
}

// inferenceProfile recognizes the ID of a model that Bedrock serves only through an inference profile.
func (r *refusal) inferenceProfile() (model.Refusal, bool) {
	found := strings.Contains(r.message, "on-demand throughput") && strings.Contains(r.message, "inference profile")
	return model.Refusal{Cause: model.CauseInferenceProfile}, found
}

var (
	notFound     = pattern(`not found|not exist|n['’]t exist|unknown|invalid|no such|not a valid|decommissioned|deprecated|access to|not (be )?support|not available`)
	noSuchModel  = pattern(`(unknown|invalid|no such) model|model identifier is invalid|model\b.{0,60}(not found|not exist|n['’]t exist|not available|decommissioned|deprecated|not (be )?support)`)
	unknownPaths = []int{http.StatusNotFound, http.StatusMethodNotAllowed}
)

// unknownModel recognizes a name of a model that the server does not know, or a wrong path.
func (r *refusal) unknownModel() (model.Refusal, bool) {
	if r.report.has("deploymentnotfound") {
		return model.Refusal{Cause: model.CauseDeployment}, true
	}
	found := slices.Contains(unknownPaths, r.status) || r.isModelNamed() || noSuchModel().MatchString(r.lower)
	return model.Refusal{Cause: model.CauseModel}, found
}

// isModelNamed reports whether the message names the model and says that it does not exist.
func (r *refusal) isModelNamed() bool {
	named := r.Model != "" && regexp.MustCompile(`(^|\W)`+regexp.QuoteMeta(r.Model)+`(\W|$)`).MatchString(r.text)
	return r.report.has("model_not_found", "model_not_available") || named && notFound().MatchString(r.message)
}

var (
	aboutMoney = pattern(`credit|\bbalance\b|billing|payment|prepaid|insufficient funds|purchase|spend(ing)? limit|wallet|top up`)
	// names matches quoted texts and identifiers: they are about a request, and not about its account.
	names = pattern("(^|[\\s(\\[=:,])(['\"`‘“][^'\"`’”\n]*['\"`’”]|\\w+[_-]\\w+)")
)

// payment recognizes an account without credit.
func (r *refusal) payment() (model.Refusal, bool) {
	mayBe := r.status == http.StatusBadRequest || r.status == http.StatusForbidden
	found := r.status == http.StatusPaymentRequired || mayBe && aboutMoney().MatchString(names().ReplaceAllString(r.message, " "))
	return model.Refusal{Cause: model.CausePayment}, found
}

// page recognizes the web page of a proxy.
func (r *refusal) page() (model.Refusal, bool) {
	mayBe := r.status >= 400 && r.status < 500 && !slices.Contains([]int{
		http.StatusRequestTimeout, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests,
	}, r.status)
	return model.Refusal{Cause: model.CausePage}, r.report.isPage && mayBe
}

// serverRules recognize an answer with HTTP 500 that describes a configuration, not a failure.
var serverRules = []rule{
	(*refusal).reasoningMissing, (*refusal).toolsWithReasoning, (*refusal).noTools, (*refusal).unknownField,
	(*refusal).roles, (*refusal).anyTool, (*refusal).serverSettings,
}

// transient are words of servers that may succeed later.
var transient = pattern(`try again|retry|temporar|later|overload|time[d]?[ -]?out|capacity|\bbusy|loading|unavailable|connection|unreachable|upstream|out of memory|internal (server )?error`)

// machine matches words about the hardware and the runtime of a server: such a message is not about the request.
var machine = pattern(`\bcuda|\bnccl|\brocm|\bhip\b|\bgpus?\b|\bdevices?\b|\bdrivers?\b|\bkernels?\b|\bworkers?\b|\bprocess(es)?\b|\bthreads?\b|engine ?core|\bengine\b|\bmemory\b|\bdisks?\b|no space|file ?system|\bi/o\b|\bnetwork|\bsockets?\b|\bdied\b|\bcrash|\bkilled\b|\btraceback\b`)

// serverCause returns the cause of an HTTP 500 or 501 that would occur again each time; empty: another request may
// succeed. Only a report in JSON comes from the server itself.
func (r *refusal) serverCause() model.Refusal {
	known := r.status == http.StatusInternalServerError || r.status == http.StatusNotImplemented
	if !known || !r.report.isJSON || transient().MatchString(r.lower) || machine().MatchString(r.lower) {
		return model.Refusal{}
	}
	return r.cause(serverRules...)
}

// flag matches a flag of a command line, setting other words about the configuration of a server: the template of its
// prompts.
var (
	flag    = pattern("(^|[\\s\"'(=`])--[a-z][a-z0-9-]+")
	setting = pattern(`template|jinja|raise_exception|at row \d+, column \d+`)
	// ofTemplate matches errors of a template that come from the request or from the template itself.
	ofTemplate = pattern(`raise_exception|jinja|at row \d+, column \d+|template.*(\broles?\b|\bmessages?\b|\btools?\b|undefined|syntax)|(\broles?\b|\bmessages?\b|\btools?\b|undefined|syntax).*template`)
	// ofRequest matches words about the content of a request.
	ofRequest = pattern(`\btools?\b|\bfunctions?\b|\broles?\b|\bmessages?\b|param|argument|\bfields?\b|\bimages?\b|vision|multimodal|audio|\breasoning\b|\bthinking\b|streaming|chat completion|chat template|\bthis (model|server)\b`)
)

// serverSettings recognizes a server that is started in the wrong way.
func (r *refusal) serverSettings() (model.Refusal, bool) {
	found := flag().MatchString(r.lower)
	switch {
	case r.status < http.StatusInternalServerError:
		found = found || setting().MatchString(r.lower)
	case r.status == http.StatusNotImplemented || ofRequest().MatchString(r.lower):
		found = found || ofTemplate().MatchString(r.lower) || plainNegative().MatchString(r.lower)
	default:
		found = found || ofTemplate().MatchString(r.lower)
	}
	return model.Refusal{Cause: model.CauseServer}, found
}

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
