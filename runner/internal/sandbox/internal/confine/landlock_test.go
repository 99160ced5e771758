//go:build linux

package confine

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// A fakeKernel reports a version of Landlock, and takes the rights of another.
type fakeKernel struct {
	reports, takes int
	refusal        error // of what it does not take
	ruleRefusal    error // of rules for ports
	applied        unix.LandlockRulesetAttr
	open           int // rulesets
}

func (f *fakeKernel) kernel() kernel {
	var made unix.LandlockRulesetAttr
	return kernel{
		version: func() (int, error) {
			if f.reports == 0 {
				return 0, unix.ENOSYS
			}
			return f.reports, nil
		},
		create: func(attr unix.LandlockRulesetAttr) (int, error) {
			most := handled(f.takes)
			if attr.Handled_access_fs&^most.Handled_access_fs != 0 || attr.Handled_access_net&^most.Handled_access_net != 0 || attr.Scoped&^most.Scoped != 0 {
				return 0, fmt.Errorf("making rules: %w", f.refusal)
			}
			made = attr
			f.open++
			return 7, nil
		},
		restrict: func(int) error {
			f.applied = made
			return nil
		},
		close: func(int) error {
			f.open--
			return nil
		},
	}
}

// The rights of the highest version that the kernel takes are restricted, and of no other; a
// version that is lower than the reported one has its reason.
func TestAKernelThatTakesLessThanItReports(t *testing.T) {
	for name, tc := range map[string]struct {
		kernel  fakeKernel
		want    int
		lowered bool
		fails   bool
	}{
		"it takes what it reports":               {fakeKernel{reports: 7, takes: 7, refusal: unix.EINVAL}, 7, false, false},
		"it takes more":                          {fakeKernel{reports: 4, takes: 7, refusal: unix.EINVAL}, 4, false, false},
		"no scopes":                              {fakeKernel{reports: 6, takes: 5, refusal: unix.EINVAL}, 5, true, false},
		"no scopes, and it is newer":             {fakeKernel{reports: 8, takes: 4, refusal: unix.E2BIG}, 5, true, false}, // 5 has no other right than 4
		"no ports":                               {fakeKernel{reports: 7, takes: 3, refusal: unix.EOPNOTSUPP}, 3, true, false},
		"no truncation":                          {fakeKernel{reports: 7, takes: 2, refusal: unix.ENOSYS}, 2, true, false},
		"no rules for ports":                     {fakeKernel{reports: 7, takes: 7, ruleRefusal: unix.EAFNOSUPPORT}, 3, true, false},
		"no moves of files":                      {fakeKernel{reports: 1, takes: 1, refusal: unix.EINVAL}, 1, false, true},
		"there is no Landlock":                   {fakeKernel{}, 0, false, true},
		"it has no memory, which is no version":  {fakeKernel{reports: 7, takes: 5, refusal: unix.ENOMEM}, 7, false, true},
		"it may not, which is no version either": {fakeKernel{reports: 7, takes: 7, ruleRefusal: unix.EPERM}, 7, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := tc.kernel
			abi, lowered, err := f.kernel().confine(f.rules)
			if abi != tc.want || (lowered != nil) != tc.lowered || (err != nil) != tc.fails {
				t.Errorf("version %d, lowered by %v, %v", abi, lowered, err)
			}
			want := handled(tc.want)
			if tc.fails {
				want = unix.LandlockRulesetAttr{}
			}
			if f.applied != want {
				t.Errorf("rights %+v are restricted, want %+v", f.applied, want)
			}
			if f.open != 0 {
				t.Errorf("%d rulesets are left open", f.open)
			}
		})
	}
}

// rules are those of a version, of which the kernel may refuse those for ports.
func (f *fakeKernel) rules(abi int) rules {
	attr := handled(abi)
	return rules{attr: attr, allow: func(int) error {
		if attr.Handled_access_net != 0 {
			return f.ruleRefusal
		}
		return nil
	}}
}

// A kernel that takes no version at all is an error with the cause, not a weaker confinement.
func TestAKernelThatTakesNothing(t *testing.T) {
	k := (&fakeKernel{reports: 7, takes: 7}).kernel()
	k.create = func(unix.LandlockRulesetAttr) (int, error) { return 0, unix.EOPNOTSUPP }
	if abi, _, err := k.confine(func(abi int) rules { return rules{attr: handled(abi)} }); !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("version %d, %v", abi, err)
	}
}
