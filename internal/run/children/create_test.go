package children

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A child is created once: under its first name, or the next if another Run has that.
func TestCreate(t *testing.T) {
	other := func(name string) client.Object { return gen.Run(named(name)) }
	child := func(name string) client.Object {
		return gen.Run(named(name), ownedBy(owner("lead")), func(r *v1alpha1.Run) { r.UID = "created-before" })
	}
	for name, tc := range map[string]struct {
		exist      []client.Object
		want       string
		existed    bool
		namesTaken bool
	}{
		"no Run has its name":                          {nil, "a", false, false},
		"it exists":                                    {[]client.Object{child("a")}, "a", true, false},
		"another Run has its name":                     {[]client.Object{other("a")}, "b", false, false},
		"another Run has it, and it exists":            {[]client.Object{other("a"), child("b")}, "b", true, false},
		"other Runs have all its names":                {[]client.Object{other("a"), other("b")}, "", false, true},
		"it has its first name, another Run the other": {[]client.Object{child("a"), other("b")}, "a", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, tc.exist...)
			fresh := gen.Run(named(""), ownedBy(owner("lead")))
			got, err := Create(t.Context(), c, c, Child{Run: fresh, Names: []string{"a", "b"}, Is: func(r *v1alpha1.Run) bool { return ParentOf(r) != nil }})
			var taken *NamesTakenError
			if tc.namesTaken {
				if !errors.As(err, &taken) || !slices.Equal(taken.Names, []string{"a", "b"}) || taken.Error() != "the names a and b are used by Runs that are not part of this one" {
					t.Errorf("%v, %v", got, err)
				}
				return
			}
			if err != nil || got.Name != tc.want || (got.UID == "created-before") != tc.existed {
				t.Fatalf("%+v, %v; want %s", got, err, tc.want)
			}
			if fresh.Name != "" {
				t.Error("the child that was asked for is changed")
			}
			var stored v1alpha1.Run
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(got), &stored); err != nil || ParentOf(&stored) == nil {
				t.Errorf("stored is %+v: %v", stored, err)
			}
		})
	}
}

var errServer = errors.New("the server is down")

// A request that fails says nothing about a name: no other is tried.
func TestCreateOnAServerThatFails(t *testing.T) {
	down := interceptor.NewClient(cluster(t), interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return errServer },
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errServer
		},
	})
	child := Child{Run: gen.Run(named("")), Names: []string{"a", "b"}, Is: func(*v1alpha1.Run) bool { return true }}
	if _, err := Create(t.Context(), down, down, child); !errors.Is(err, errServer) {
		t.Errorf("it cannot be created: %v", err)
	}
	taken := cluster(t, gen.Run(named("a")))
	if got, err := Create(t.Context(), taken, down, child); !errors.Is(err, errServer) || got != nil {
		t.Errorf("the Run of its name cannot be read: %v, %v", got, err)
	}
}

func TestHashedName(t *testing.T) {
	const digits = 8
	hash := "-" + task.Hash([]byte("u"))[:digits]
	room := MaxName - len(hash)
	for name, tc := range map[string]struct{ name, want string }{
		"a short name":                     {"lead-a", "lead-a" + hash},
		"a name that just fits":            {strings.Repeat("a", room), strings.Repeat("a", room) + hash},
		"a longer name is cut":             {strings.Repeat("a", room+1), strings.Repeat("a", room) + hash},
		"no hyphen or point before a hash": {strings.Repeat("a", room-3) + "-.-b", strings.Repeat("a", room-3) + hash},
	} {
		if got := HashedName(tc.name, "u", digits); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
