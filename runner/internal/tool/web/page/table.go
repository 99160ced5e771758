package page

// top is the table that is open; nil: none is.
func (r *reader) top() *table {
	if n := len(r.tables); n > 0 {
		return &r.tables[n-1]
	}
	return nil
}

func (r *reader) beginTable(t *tag) {
	if t.name == "table" {
		r.breakBlock()
		g := r.survey.grids[t.at]
		layout := g == nil || g.layout || g.widest < 2 || r.pre > 0 || r.out.noBreaks > 0
		r.tables = append(r.tables, table{layout: layout})
		return
	}
	switch top := r.top(); {
	case top == nil || top.layout && t.name != "tr":
		r.out.gap()
	case top.layout:
		r.breakLine()
	case t.name == "tr":
		r.out.line()
		top.cells = 0
	default:
		top.cells++
		r.out.cell()
	}
}

func (r *reader) endTable(t *tag) {
	top := r.top()
	switch {
	case top == nil:
	case t.name == "table":
		r.tables = r.tables[:len(r.tables)-1]
		r.breakBlock()
	case top.layout:
	case t.name != "tr":
		r.out.endCell()
	case top.cells > 0:
		r.out.endRow()
		if top.rows++; top.rows == 1 {
			r.out.divider(top.cells)
		}
	}
}
