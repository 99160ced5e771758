package workflowrun

import (
	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// refusedStories are about child Runs that the API server refuses.
var refusedStories = map[string]story{
	"quota": {
		title: "the namespace has no room for a child, for a while",
		spec:  pipeline,
		beats: []beat{
			at(0, "the quota is used up", refuses(forbids("exceeded quota: compute, requested: count/runs.deckhand.dev=1"))),
			at(20*second, "there is room again", takes),
			at(40*second, "x-a ends", ends("x-a", 1)),
			at(41*second, "x-b ends", ends("x-b", 1)),
		},
	},
	"quota-forever": {
		title: "the namespace has no room for a child Run, longer than limits.pending",
		spec:  pipeline,
		beats: []beat{
			at(1*second, "x-a ends", several(ends("x-a", 1), refuses(forbids("exceeded quota: compute, requested: count/runs.deckhand.dev=1")))),
		},
	},
	"quota-beside-work": {
		title: "the namespace has no room for a second child Run while the first works: limits.pending begins when it has ended",
		spec:  diamond,
		beats: []beat{
			at(1*second, "x-a ends; there is room for one more", func(c *cluster) {
				ends("x-a", 1)(c)
				c.refuse = func(r *v1alpha1.Run) error {
					if r.Name == "x-left" {
						return nil
					}
					return forbids("exceeded quota: compute, requested: count/runs.deckhand.dev=1")
				}
			}),
			at(30*minute, "x-left ends", ends("x-left", 1)),
		},
	},
	"quota-at-finally": {
		title: "a node failed, and the namespace has no room for the child Run of finally",
		spec:  diamond,
		beats: []beat{
			at(1*second, "x-a fails; the quota is used up", several(fails("x-a", v1alpha1.ReasonRejected, "no"), refuses(forbids("exceeded quota: compute, requested: count/runs.deckhand.dev=1")))),
		},
	},
	"forbidden": {
		title: "the operator may not create child Runs for a while",
		spec:  pipeline,
		beats: []beat{
			at(1*second, "x-a ends; the permission is removed", several(ends("x-a", 1), refuses(forbids(`User "deckhand" cannot create resource "runs" in API group "deckhand.dev" in the namespace "team-a"`)))),
			at(5*minute, "the permission is granted", takes),
			at(6*minute, "x-b ends", ends("x-b", 1)),
		},
	},
	"forbidden-forever": {
		title: "the operator may not create child Runs, longer than limits.pending",
		spec:  pipeline,
		run: func(r *v1alpha1.Run) {
			limit := v1alpha1.Duration("2m")
			r.Spec.Limits = &v1alpha1.Limits{Pending: &limit}
		},
		beats: []beat{
			at(1*second, "x-a ends; the permission is removed", several(ends("x-a", 1), refuses(forbids(`User "deckhand" cannot create resource "runs" in API group "deckhand.dev" in the namespace "team-a"`)))),
		},
	},
	"refused": {
		title: "the cluster does not take a child",
		spec:  diamond,
		beats: []beat{
			at(0, "a policy denies x-a", func(c *cluster) {
				c.refuse = func(r *v1alpha1.Run) error {
					if r.Name != "x-a" {
						return nil
					}
					return forbids("admission webhook \"p\" denied the request: no agents on Fridays")
				}
			}),
			at(2*second, "x-clean ends", ends("x-clean", 0)),
		},
	},
}
