package httpapi

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
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
