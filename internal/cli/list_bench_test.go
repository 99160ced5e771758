package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// BenchmarkList lists 10,000 finished Runs of a server on loopback that has its answer ready.
func BenchmarkList(b *testing.B) {
	const runs = 10_000
	list := &v1alpha1.RunList{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RunList"}}
	for i := range runs {
		run := namedRun(fmt.Sprintf("run-%05d", i), v1alpha1.ReasonFinished, finished, used(4, 1000, 20, 30_000))
		run.CreationTimestamp = metav1.NewTime(gen.Noon.Add(time.Duration(i) * time.Second))
		run.Spec.Prompt = strings.Repeat("Review the README. ", 20)
		run.Status.Progress.Result = &v1alpha1.Result{Text: strings.Repeat("All is well. ", 50)}
		list.Items = append(list.Items, *run)
	}
	data, err := tableOf(b.Context(), list)
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(data)
	}))
	defer server.Close()
	f := NewFactory(strings.NewReader(""), io.Discard, io.Discard)
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", Namespace: gen.Namespace}
	config.CurrentContext = "c"
	f.config = clientcmd.NewDefaultClientConfig(*config, nil)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if err := (lister{f, listOptions{}}).list(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
