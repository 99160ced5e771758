package main

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each effect is counted, whoever asks at the same time.
func TestCounts(t *testing.T) {
	url := serve(t, "")
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { get(t, http.MethodPost, url+"/count?id=mail") })
	}
	all.Wait()
	if a := get(t, http.MethodPost, url+"/count?id=order&delayMS=1"); a.body != "1\n" {
		t.Errorf("the first time it answers %q", a.body)
	}
	if a := get(t, http.MethodPost, url+"/count?id=order"); a.body != "2\n" {
		t.Errorf("the second time it answers %q", a.body)
	}
	var counts map[string]int
	if err := json.Unmarshal([]byte(get(t, http.MethodGet, url+"/counts").body), &counts); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"mail": 20, "order": 2}, counts); diff != "" {
		t.Errorf("counts -want +got:\n%s", diff)
	}
	if a := get(t, http.MethodGet, url+"/journal"); a.body != "[]\n" {
		t.Errorf("effects fill the journal: %s", a.body)
	}
}

func TestCountsThatAreNone(t *testing.T) {
	url := serve(t, "")
	for _, id := range []string{"", strings.Repeat("x", maxID+1)} {
		if a := get(t, http.MethodPost, url+"/count?id="+id); a.status != http.StatusBadRequest || !strings.Contains(a.body, "id needs") {
			t.Errorf("an id of %d characters: %+v", len(id), a)
		}
	}
	full := &counter{counts: map[string]int{}}
	for n := range maxCounts {
		full.counts[strconv.Itoa(n)] = 1
	}
	if _, ok := full.increment("one more"); ok {
		t.Error("there is no end of it")
	}
	if n, ok := full.increment("7"); n != 2 || !ok {
		t.Error("what is known is not counted any more")
	}
}
