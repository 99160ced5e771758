package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// A runTable is the part of a metav1.Table that list shows. The API server makes the cells from
// the columns of the CRD: whole Runs would be four times as long, and twice as slow to list.
type runTable struct {
	Metadata          metav1.ListMeta                `json:"metadata"`
	ColumnDefinitions []metav1.TableColumnDefinition `json:"columnDefinitions"`
	Rows              []runRow                       `json:"rows"`
}

// A runRow is one Run.
type runRow struct {
	Cells  []any `json:"cells"`
	Object struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	} `json:"object"`

	columns map[string]int
}

// cell returns the text in a column; "" if the CRD is older and does not have the column.
func (r runRow) cell(column string) string {
	if i, ok := r.columns[column]; ok && i < len(r.Cells) && r.Cells[i] != nil {
		return fmt.Sprint(r.Cells[i])
	}
	return ""
}

// A tableReader requests one page of the Runs of a namespace, or of all if it is empty, as a table.
type tableReader func(ctx context.Context, namespace string, options metav1.ListOptions) ([]byte, error)

// rows returns the Runs that the user selected.
func (l lister) rows(ctx context.Context) ([]runRow, error) {
	read, err := l.tableReader()
	if err != nil {
		return nil, err
	}
	selected, err := l.selection(l.o.allNamespaces, l.o.selector)
	if err != nil {
		return nil, err
	}
	list := (&client.ListOptions{Limit: pageSize}).ApplyOptions(selected)
	options := *list.AsListOptions()
	var rows []runRow
	for {
		data, err := read(ctx, list.Namespace, options)
		if err != nil {
			return nil, err
		}
		page, err := parseTable(data)
		if err != nil {
			return nil, err
		}
		rows = append(rows, page.Rows...)
		if options.Continue = page.Metadata.Continue; options.Continue == "" {
			return rows, nil
		}
	}
}

func parseTable(data []byte) (runTable, error) {
	var t runTable
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // 7375000 is not 7.375e+06
	if err := decoder.Decode(&t); err != nil {
		return t, fmt.Errorf("reading the list of Runs that the API server sent: %w", err)
	}
	columns := map[string]int{}
	for i, c := range t.ColumnDefinitions {
		columns[c.Name] = i
	}
	for i := range t.Rows {
		t.Rows[i].columns = columns
	}
	return t, nil
}

// tableReader returns a reader of the user's cluster.
func (f *Factory) tableReader() (tableReader, error) {
	if f.readTable != nil {
		return f.readTable, nil
	}
	config, err := f.config.ClientConfig()
	if err != nil {
		return nil, configError(err)
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/apis", &v1alpha1.GroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, namespace string, options metav1.ListOptions) ([]byte, error) {
		result := c.Get().NamespaceIfScoped(namespace, namespace != "").Resource("runs").
			VersionedParams(&options, metav1.ParameterCodec).
			SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
			Do(ctx)
		if err := result.Error(); err != nil { // unlike that of Raw, it says what the API server says
			return nil, err
		}
		return result.Raw()
	}, nil
}
