package router_test

import (
	"context"
	"iter"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A scripted Model says these things, one after the other, and then the last
// again; it remembers what it was asked.
type scripted struct {
	tries []try
	asked []*model.Request
}

type try struct {
	deltas []model.Delta
	err    error
}

func (s *scripted) Stream(_ context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	next := s.tries[min(len(s.asked), len(s.tries)-1)]
	s.asked = append(s.asked, req)
	return func(yield func(model.Delta, error) bool) {
		for _, d := range next.deltas {
			if !yield(d, nil) {
				return
			}
		}
		if next.err != nil {
			yield(model.Delta{}, next.err)
		}
	}
}

func does(tries ...try) *scripted { return &scripted{tries: tries} }

// says is a whole answer that cost some input.
func says(text string, input int64) try {
	return try{deltas: []model.Delta{{Text: text}, cost(input), {Finish: step.FinishStop}}}
}

// breaks is an answer that broke off after a word.
func breaks(input int64) try {
	return try{deltas: []model.Delta{{Text: "We"}, cost(input)}, err: cut}
}

func fails(err error) try { return try{err: err} }
