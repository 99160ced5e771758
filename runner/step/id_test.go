package step

import "testing"

func TestIDs(t *testing.T) {
	for _, tc := range []struct {
		got, want string
		seq       int64
	}{
		{ID("", 14), "s14", 14},
		{CallID("", 14, 2), "s14c2", 14},
		{ID("s3c1", 14), "s3c1.s14", 14},
		{CallID("s3c1", 14, 2), "s3c1.s14c2", 14},
		{"approval", "approval", 0},
		{"s3c1.", "s3c1.", 0},
		{"", "", 0},
	} {
		if tc.got != tc.want || SeqOf(tc.got) != tc.seq {
			t.Errorf("%s with number %d, want %s with %d", tc.got, SeqOf(tc.got), tc.want, tc.seq)
		}
	}
}
