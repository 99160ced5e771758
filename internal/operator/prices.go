package operator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deckhand-dev/deckhand/internal/revision/listprices"
)

// PriceFile is a list of prices of the installation, mounted from a ConfigMap. It overrides the catalog.
type PriceFile struct {
	// Path is the file; empty: there is none. Source is its name in the status of Models.
	Path, Source string
}

// priceFileEvery is how often the file is checked for changes. The kubelet takes up to a minute to update it.
const priceFileEvery = 10 * time.Second

// A priceFile puts the prices of a file in force each time that it changes.
type priceFile struct {
	PriceFile

	log logr.Logger
	// changed reconciles the objects that depend on prices.
	changed func()
	last    string // content; empty: there was no file
}

// addPriceFile reads the list of prices, and again whenever it changes. The operator starts with a
// wrong list, too: it uses the catalog.
func addPriceFile(mgr ctrl.Manager, o Options, changed func()) error {
	if o.Prices.Path == "" {
		return nil
	}
	p := &priceFile{PriceFile: o.Prices, log: o.Log.WithName("prices"), changed: changed}
	p.compare()
	if err := mgr.Add(p); err != nil {
		return fmt.Errorf("adding the list of prices: %w", err)
	}
	return nil
}

// NeedLeaderElection returns false: a standby operator must know the prices when it leads.
func (*priceFile) NeedLeaderElection() bool { return false }

// Start compares the file until the context ends.
func (p *priceFile) Start(ctx context.Context) error {
	ticker := time.NewTicker(priceFileEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			p.compare()
		}
	}
}

// compare reads the file, and uses it if it changed. An invalid list is not used: the previous list stays in force.
func (p *priceFile) compare() {
	data, err := os.ReadFile(p.Path)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = nil, nil
	}
	if err != nil {
		p.log.Error(err, "The list of prices cannot be read; the one before stays in force", "source", p.Source)
		return
	}
	if string(data) == p.last {
		return
	}
	p.last = string(data)
	p.use(data)
	p.changed()
}

// use puts the content of the file in force.
func (p *priceFile) use(data []byte) {
	if len(data) == 0 {
		p.log.Info("There is no list of prices any more; the catalog holds", "source", p.Source)
		listprices.Use(nil)
		return
	}
	o, err := listprices.ParseOverride(data, p.Source)
	if err != nil {
		p.log.Error(err, "The list of prices is not used; the one before, or else the catalog, stays in force", "source", p.Source, "file", p.Path)
		listprices.Reject(fmt.Errorf("%s: %w", p.Source, err))
		return
	}
	p.log.Info("The list of prices is in force", "source", p.Source, "rows", o.Len())
	listprices.Use(o)
}
