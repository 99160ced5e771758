// Package untrusted makes the reports of a runner safe to read, to show and to sum. A runner executes the requests of a
// model, and a compromised one can write anything that the schema of Run accepts. Code that reads status.progress or a
// termination message calls Progress or Termination first. Data, such as the arguments of a call or the text of a
// result, stays unchanged there: Line and Quote prepare it for a condition, an event or a log, and Text for a terminal.
package untrusted

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Line returns text on one line that a terminal shows exactly, cut at limit bytes. White space is collapsed. Control
// characters, and characters that are invisible or change the direction of writing (Trojan Source, CVE-2021-42574), are
// escaped.
func Line(text string, limit int) string {
	var out strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			out.WriteByte(' ')
		case unicode.Is(unicode.Variation_Selector, r): // of emoji; carries no meaning alone
		case isInvisible(r):
			out.WriteString(escaped(r))
		default:
			out.WriteRune(r)
		}
	}
	return task.Cut(strings.Join(strings.Fields(out.String()), " "), limit)
}

// Text returns the full text in a form that a terminal shows exactly, with its lines and tabs. Other characters that
// are invisible, move the cursor or change the direction of writing are escaped.
func Text(text string) string {
	var out strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t':
			out.WriteRune(r)
		case r == '\ufe0e' || r == '\ufe0f': // how an emoji looks; carries no meaning alone
		case isInvisible(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Variation_Selector):
			out.WriteString(escaped(r))
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

func isInvisible(r rune) bool {
	const brailleBlank = '\u2800'
	return r == brailleBlank || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Other_Default_Ignorable_Code_Point)
}

func escaped(r rune) string {
	switch {
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// quotationMarks are the characters that look like the ones that Quote writes.
const quotationMarks = "\u201c\u201d\u201e\u201f\u2033\u2034\u2036\u2037\u2057\u275d\u275e\u2760\u2e42\u301d\u301e\u301f\uff02\u02ba\u02dd\u02ee\u02f5\u02f6\u05f4\u3003\U0001f676\U0001f677\U0001f678"

// singleMarks are characters of which two look like a quotation mark.
const singleMarks = "\u2018\u2019\u201a\u201b\u2032\u2035\u275b\u275c\u02bb\u02bc\u02bd\u055a\u05f3\uff07\u02b9\u02bf"

// WithoutQuotationMarks returns text in which nothing looks like the quotation marks of Quote, so that it cannot begin
// or end a quotation of the operator.
func WithoutQuotationMarks(text string) string {
	runes := []rune(text)
	isSingle := func(i int) bool { return i >= 0 && i < len(runes) && strings.ContainsRune(singleMarks, runes[i]) }
	var out strings.Builder
	for i, r := range runes {
		if strings.ContainsRune(quotationMarks, r) || isSingle(i) && (isSingle(i-1) || isSingle(i+1)) {
			r = '\''
		}
		out.WriteRune(r)
	}
	return out.String()
}

// Words is [Line] for a part of a condition or an event that is not quoted, such as a name.
func Words(text string, limit int) string { return WithoutQuotationMarks(Line(text, limit)) }

// Quote returns text on one line in curly quotation marks. The text cannot contain the closing mark, so everything
// after it comes from the operator.
func Quote(text string, limit int) string { return "“" + Words(text, limit) + "”" }

// EscapeJSON returns JSON whose texts a terminal shows exactly: characters that [Text] escapes are written as JSON
// escapes, for example \u202e. The value is unchanged.
func EscapeJSON(data []byte) []byte {
	return escape(data, func(r rune) string {
		if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
			return fmt.Sprintf(`\u%04x\u%04x`, high, low)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// EscapeYAML is EscapeJSON for YAML, if the texts that need escapes are in double quotes.
func EscapeYAML(data []byte) []byte {
	return escape(data, func(r rune) string {
		if r > 0xffff {
			return fmt.Sprintf(`\U%08x`, r)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// escape escapes invisible characters, except line feeds and tabs, which both formats are written with, and
// the selectors of how an emoji looks.
func escape(data []byte, escaped func(rune) string) []byte {
	var out strings.Builder
	out.Grow(len(data))
	for _, r := range string(data) {
		switch {
		case r == '\n' || r == '\t' || r == '\ufe0e' || r == '\ufe0f':
			out.WriteRune(r)
		case isInvisible(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Noncharacter_Code_Point):
			out.WriteString(escaped(r))
		default:
			out.WriteRune(r)
		}
	}
	return []byte(out.String())
}

// digestPattern matches digests, which users copy.
var digestPattern = regexp.MustCompile(`^[0-9A-Za-z._:+/=-]{0,64}$`)

// kinds are the kinds of requests; a request without a kind is a question.
var kinds = []string{"", task.PendingApproval, task.PendingQuestion, task.PendingLimit, task.PendingDelegation}

// Progress returns what a runner reported with each count within its bounds, with
// names and messages on one visible line, and without requests of unknown kinds and
// requests and Decisions whose ids could not be those of Kubernetes objects. The original is not changed.
func Progress(p *v1alpha1.RunProgress) *v1alpha1.RunProgress {
	if p == nil {
		return nil
	}
	p = p.DeepCopy()
	clampCounts(&p.Counts)
	clampUsage(&p.Usage)
	lines(task.MaxMessage, &p.PodUID, &p.State, &p.Model, &p.Usage.Cost, &p.Usage.Duration)
	if p.ModelWait != nil {
		lines(task.MaxHost, &p.ModelWait.Model)
		lines(task.MaxWarning, &p.ModelWait.Message)
	}
	if p.Step != nil {
		cleanID(&p.Step.ID)
		lines(task.MaxMessage, &p.Step.Kind, &p.Step.Name)
	}
	for i := range p.Recent {
		r := &p.Recent[i]
		clamp(&r.DurationMs)
		cleanID(&r.ID)
		lines(task.MaxSummary, &r.Kind, &r.Name, &r.Summary)
	}
	p.Pending = slices.DeleteFunc(p.Pending, func(r v1alpha1.PendingRequest) bool {
		return !IsID(r.ID) || !slices.Contains(kinds, r.Kind) || !digestPattern.MatchString(r.Digest) || !digestPattern.MatchString(r.DisplayDigest)
	})
	for i := range p.Pending {
		lines(task.MaxAsker, &p.Pending[i].Agent, &p.Pending[i].Tool, &p.Pending[i].Rule)
	}
	p.Decided = slices.DeleteFunc(p.Decided, func(d v1alpha1.DecidedRequest) bool {
		return !IsID(d.Name) || d.Request != "" && !IsID(d.Request) || !digestPattern.MatchString(d.Digest)
	})
	for i := range p.Decided {
		lines(task.MaxRefused, &p.Decided[i].Refused)
	}
	if p.Refused != nil {
		cleanRefused(p.Refused)
	}
	if p.Result != nil {
		cleanResult(p.Result)
	}
	return p
}

// maxAhead is how far the clock of a runner may be ahead.
const maxAhead = time.Minute

// IsTime reports whether a reported time is plausible for a Run: after its creation, in whole seconds, and not after
// now. The operator ignores reports of other times, which come only from a compromised runner or one with a wrong
// clock.
func IsTime(at, created, now time.Time) bool {
	return !at.Before(created) && !at.After(now.Add(maxAhead))
}

// IsID reports whether an id can be a part of the name of a Kubernetes object. The operator ignores a request with any
// other id, which only a compromised runner writes.
func IsID(id string) bool { return len(validation.IsDNS1123Subdomain(id)) == 0 }

// cleanID empties an invalid id of a step.
func cleanID(id *v1alpha1.StepID) {
	if len(*id) > task.MaxStepID || *id != "" && !IsID(string(*id)) {
		*id = ""
	}
}

func cleanRefused(r *v1alpha1.Refused) {
	clamp(&r.Connections, &r.ToolCalls)
	for i := range r.Hosts {
		h := &r.Hosts[i]
		clamp(&h.Count)
		cleanID(&h.FirstID)
		lines(task.MaxHost, &h.Host)
	}
	for i := range r.Tools {
		t := &r.Tools[i]
		clamp(&t.Count)
		cleanID(&t.FirstID)
		lines(task.MaxTool, &t.Name)
	}
}

func cleanResult(r *v1alpha1.Result) {
	lines(task.MaxMessage, &r.Reason, &r.Message)
	lines(task.MaxWarning, &r.Warning)
	for i := range r.Files {
		clamp(&r.Files[i].Size)
		lines(task.MaxPath, &r.Files[i].Path)
	}
	if r.Published != nil {
		lines(task.MaxMessage, &r.Published.Branch, &r.Published.Commit)
	}
}

// Termination does the same for a termination message as Progress for a report.
func Termination(t task.Termination) task.Termination {
	counts, usage := v1alpha1.Counts(t.Counts), v1alpha1.Usage(t.Usage)
	clampCounts(&counts)
	clampUsage(&usage)
	lines(task.MaxMessage, &usage.Cost, &usage.Duration, &t.Result.Message)
	lines(task.MaxWarning, &t.Result.Warning)
	t.Counts, t.Usage = task.Counts(counts), task.Usage(usage)
	t.Result.Reason = task.Reason(Line(string(t.Result.Reason), task.MaxReason))
	t.Result.Files = slices.Clone(t.Result.Files)
	for i := range t.Result.Files {
		clamp(&t.Result.Files[i].Size)
		lines(task.MaxPath, &t.Result.Files[i].Path)
	}
	return t
}

func clampCounts(c *v1alpha1.Counts) {
	clampTo(v1alpha1.MaxCount, &c.Steps, &c.ModelCalls, &c.ToolCalls, &c.ToolErrors, &c.Errors, &c.Repairs, &c.OutageCalls)
}

func clampUsage(u *v1alpha1.Usage) {
	clamp(&u.InputTokens, &u.CacheReadTokens, &u.CacheWriteTokens, &u.OutputTokens, &u.ReasoningTokens, &u.TotalTokens)
	clampTo(v1alpha1.MaxCount, &u.DurationSeconds)
	for _, optional := range []**int64{&u.CostMicroUSD, &u.ChildTokens, &u.ChildCostMicroUSD} {
		if *optional != nil {
			n := **optional
			clamp(&n)
			*optional = &n
		}
	}
}

func clamp(counts ...*int64) { clampTo(v1alpha1.MaxUsage, counts...) }

func clampTo(most int64, counts ...*int64) {
	for _, n := range counts {
		*n = min(max(*n, 0), most)
	}
}

// lines makes a line of at most limit bytes of each text.
func lines(limit int, texts ...*string) {
	for _, text := range texts {
		*text = Line(*text, limit)
	}
}
