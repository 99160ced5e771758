package config_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/tool/control"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/delegate"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/files"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/python"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/recall"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/shell"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/web"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// The operator validates names of tools by the table of package task.
func TestBuiltinToolsHaveTheNamesOfTheContract(t *testing.T) {
	names := map[string][]string{
		"Files":       {files.NameRead, files.NameWrite, files.NameEdit, files.NameLs, files.NameGlob, files.NameGrep},
		"Think":       {control.NameThink},
		"Ask":         {control.NameAsk},
		"Task":        {delegate.NameTask},
		"Recall":      {recall.Name},
		"HTTPRequest": {web.NameHTTPRequest},
		"WebSearch":   {web.NameWebSearch},
		"Browse":      {web.NameBrowse},
		"Shell":       {shell.Name, shell.NameOutput, shell.NameKill},
		"Python":      {python.Name},
	}
	if !maps.EqualFunc(names, task.BuiltinTools, slices.Equal) {
		t.Errorf("the runner has %v, the contract %v", names, task.BuiltinTools)
	}
	if want := []string{control.NameFinish, control.NameReject}; !slices.Equal(want, task.ToolsOfEveryAgent) {
		t.Errorf("every agent has %v, in the contract %v", want, task.ToolsOfEveryAgent)
	}
}
