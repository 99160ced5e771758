// Package repair is a layer that has a model correct arguments that do not match the schema of their tools, before they
// are recorded: an Agent's route Repair. The toolbox corrects small errors of notation without a model. All other
// arguments are shown once to the other model, with the schema and the error. If its answer does not match either, the
// call is unchanged and the agent's own model reads the error.
package repair

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/deckhand-dev/deckhand/runner/internal/tool/args"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// Priority puts the layer close to the model: outer layers see the corrected calls.
const Priority = 450

// maxMended is how many calls of one answer are corrected. Each costs a model call, which no limit counts before the
// next turn.
const maxMended = 8

// maxArgs is how much of broken arguments is shown to the model.
const maxArgs = 32 << 10

const instructions = "You correct the arguments of a tool call so that they fit the tool's JSON Schema. " +
	"Keep what was meant; add nothing and leave nothing out. Answer with the corrected JSON object alone."

// A Toolbox reads arguments and validates them against schemas.
type Toolbox interface {
	Specs() []step.Tool
	Read(name, raw string) json.RawMessage
	Check(name string, given json.RawMessage) *tool.Error
}

// Layer corrects the arguments of calls with the answers of m.
func Layer(m model.Model, tools Toolbox) middleware.Layer {
	specs := map[string]step.Tool{}
	for _, s := range tools.Specs() {
		specs[s.Name] = s
	}
	r := repairer{model: m, tools: tools, specs: specs}
	return middleware.Layer{
		Name: "repair", Priority: Priority,
		Model: func(next middleware.ModelFunc) middleware.ModelFunc {
			return func(ctx context.Context, t *middleware.Turn) (model.Response, error) {
				resp, err := next(ctx, t)
				if err != nil || resp.Finish == step.FinishLength {
					return resp, err
				}
				r.repair(ctx, t, &resp)
				return resp, nil
			}
		},
	}
}

type repairer struct {
	model model.Model
	tools Toolbox
	specs map[string]step.Tool
}

// repair corrects the invalid calls of an answer. If the model is not available, nothing is corrected.
func (r repairer) repair(ctx context.Context, t *middleware.Turn, resp *model.Response) {
	asked := 0
	for i, c := range resp.Calls {
		spec, known := r.specs[c.Name]
		if !known || asked == maxMended || ctx.Err() != nil {
			continue
		}
		wrong := r.tools.Check(c.Name, r.tools.Read(c.Name, c.Args))
		if wrong == nil {
			continue
		}
		asked++
		answer, err := model.Collect(r.model.Stream(ctx, question(spec, c.Args, wrong)), nil)
		t.Charge(answer.Usage)
		if err != nil {
			continue
		}
		if mended, ok := args.RepairJSON(text(answer)); ok && r.tools.Check(c.Name, mended) == nil {
			resp.Calls[i].Args = string(mended)
		}
	}
}

// question asks for one call to be corrected.
func question(spec step.Tool, given string, wrong *tool.Error) *model.Request {
	if len(given) > maxArgs {
		given = given[:maxArgs]
	}
	text := fmt.Sprintf("Tool: %s\n%s\n\nSchema of its arguments:\n%s\n\nThe arguments as they were written:\n%s\n\nWhat is wrong: %s",
		spec.Name, spec.Description, spec.Input, given, tool.Result{Error: wrong}.Render())
	return &model.Request{
		System: instructions,
		Steps:  []step.Step{{Seq: 1, Role: step.RoleUser, Parts: []step.Part{{Kind: step.PartText, Text: text}}}},
	}
}

func text(r model.Response) string { return step.Step{Parts: r.Parts}.Text() }
