package config

import (
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
	"github.com/deckhand-dev/deckhand/runner/tool/talk"
)

// builtin registers what the runner comes with.
func builtin(r *Registry) {
	for _, provider := range []string{openai.ProviderOpenAI, openai.ProviderOpenAICompatible} {
		r.Model(provider, openAI)
	}
	r.Tool("Files", func(s ToolSpec) ([]tool.Tool, error) { return s.Files.Tools(), nil })
	r.Tool("Think", func(ToolSpec) ([]tool.Tool, error) { return []tool.Tool{talk.Think()}, nil })
}

func openAI(s ModelSpec) (model.Model, error) {
	return openai.New(openai.Options{
		Provider: s.Provider, Name: s.Name, Model: s.Model.Model,
		Endpoint: s.Endpoint, Headers: s.Headers, Key: s.Key,
	})
}

// ending are the tools that end a Run; every Agent has them.
func ending(agent task.Agent) ([]tool.Tool, error) {
	finish := talk.Finish()
	if len(agent.OutputSchema) > 0 {
		var err error
		if finish, err = talk.FinishWith(agent.OutputSchema); err != nil {
			return nil, err
		}
	}
	return []tool.Tool{finish, talk.Reject()}, nil
}
