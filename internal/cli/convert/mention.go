package convert

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/cli/lint"
)

// A Mention is a line with a name of before that is not converted: a label in a selector, or a field of a
// status that a script reads.
type Mention struct {
	File    string
	Line    int
	Was, Is string
}

// A formerName is a former name that no schema refuses, for example in an expression, which finds no value under it.
type formerName struct {
	was, is string
	today   *regexp.Regexp // where the name is one of today; nil: nowhere
	pattern *regexp.Regexp
}

// formerNames are the names of docs/reference/api-changes.md in labels, annotations, pods and status.
var formerNames = patternsOf([]formerName{
	{was: "deckhand.dev/snapshot", is: "deckhand.dev/revision"},
	{was: "deckhand.dev/version", is: "deckhand.dev/revision-hash"},
	{was: "deckhand.dev/versions", is: "deckhand.dev/required-revisions"},
	{was: "deckhand.dev/claim", is: "deckhand.dev/volume-claim"},
	{was: "deckhand.dev/node", is: "deckhand.dev/workflow-node"},
	{was: "deckhand.dev/index", is: "deckhand.dev/item-index"},
	{was: "/deckhand/task/snapshot.json", is: "/deckhand/task/runner.json"},
	{was: "/deckhand/last-word", is: "/deckhand/termination-log"},
	{was: "status.target", is: "status.target.kind and status.target.name", today: regexp.MustCompile(`status\.target\.(kind|name)\b`)},
	{was: "status.version", is: "status.workflowRevision"},
	{was: "status.attempt.agent", is: "status.attempt.agentRevision"},
	{was: "status.attempt.claim", is: "status.attempt.volumeClaim"},
	{was: "status.attempt.pendingSince", is: "status.internal.pendingSince"},
	{was: "status.resumedAt", is: "status.internal.resumedAt"},
	{was: "status.delegated", is: "status.internal.delegated"},
	{was: "status.handledTime", is: "status.internal.handledTime"},
	{was: "status.progress.step.number", is: "status.progress.step.id"},
	{was: "status.progress.recent[].step", is: "status.progress.recent[].id"},
	{was: "status.progress.refused.hosts[].firstStep", is: "status.progress.refused.hosts[].firstID"},
	{was: "status.progress.refused.tools[].firstStep", is: "status.progress.refused.tools[].firstID"},
	{was: "status.progress.pending[].groups", is: "status.progress.pending[].approvers.groups"},
})

// patternsOf adds patterns that find names, also as a JSONPath has them: deckhand\.dev/node, recent[*].step.
func patternsOf(names []formerName) []formerName {
	for i, n := range names {
		text := strings.ReplaceAll(regexp.QuoteMeta(n.was), `\[\]`, `\[[^\]]*\]`)
		text = strings.ReplaceAll(text, `deckhand\.dev`, `deckhand\\{0,2}\.dev`)
		names[i].pattern = regexp.MustCompile(`(?:^|[^\w/-])` + text + `(?:$|[^\w/-])`)
	}
	return names
}

// aboutRuns matches documents that name this API, or read Runs with kubectl.
var aboutRuns = regexp.MustCompile(`deckhand|\bkubectl\b.*\bruns?\b`)

func (n formerName) isIn(line []byte) bool {
	if n.today != nil {
		line = n.today.ReplaceAll(line, nil)
	}
	return n.pattern.Match(line)
}

// Mentions returns the lines of files with names of before that Files does not convert. A name of a status
// counts only in documents that are about this API.
func Mentions(files []lint.File) []Mention {
	var out []Mention
	for _, file := range files {
		for _, d := range split(file) {
			out = append(out, d.mentions()...)
		}
	}
	return out
}

func (d *document) mentions() []Mention {
	var out []Mention
	if !aboutRuns.Match(d.data) {
		return nil
	}
	line := d.first - 1
	for text := range bytes.Lines(d.data) {
		line++
		if bytes.HasPrefix(bytes.TrimSpace(text), []byte("#")) {
			continue
		}
		for _, n := range formerNames {
			if n.isIn(text) {
				out = append(out, Mention{d.file, line, n.was, n.is})
			}
		}
	}
	return out
}
