package expr_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/expr"
)

// refused has expressions that do not compile, with the error and its position.
var refused = map[string]struct {
	text, want   string
	line, column int
}{
	"an output that may be absent, compared": {
		`nodes.maybe.output.score > 3`,
		"nodes.maybe.output.score may be absent: write nodes.maybe.?output.?score.orValue(0)", 1, 1,
	},
	"an output that may be absent, as a whole":  {`nodes.maybe.output`, "nodes.maybe.output may be absent: write nodes.maybe.?output.?score.orValue(0)", 1, 1},
	"a field that is not required":              {`nodes.sure.output.note + "!"`, `write nodes.sure.output.?note.orValue('')`, 1, 1},
	"the second of two conditions":              {`true && nodes.maybe.output.score == 3`, "nodes.maybe.output.score may be absent", 1, 9},
	"a condition that may be absent":            {`!nodes.gate.output.approved`, "nodes.gate.output.approved may be absent: write nodes.gate.?output.?approved.orValue(false)", 1, 2},
	"an item that may be absent":                {`nodes.items.output.filter(r, r.score > 3)`, "r.score may be absent: write r.?score.orValue(0)", 1, 30},
	"an item by its number":                     {`nodes.items.output[0].score == 1`, "write nodes.items.output[0].?score.orValue(0)", 1, 1},
	"what is absent, in a function":             {`size(nodes.sure.output.files)`, "write nodes.sure.output.?files.orValue([])", 1, 6},
	"what is absent, as a list":                 {`nodes.sure.output.files.map(f, f.path)`, "write nodes.sure.output.?files.orValue([])", 1, 1},
	"what is absent, hidden by dyn":             {`dyn(nodes.maybe.output) == 3`, "nodes.maybe.output may be absent", 1, 5},
	"what is absent, compared with any value":   {`input.any == nodes.maybe.output.score`, "nodes.maybe.output.score may be absent", 1, 14},
	"what is absent, compared with null":        {`nodes.maybe.output != null`, "nodes.maybe.output may be absent, but is never null: write nodes.maybe.?output.hasValue()", 1, 1},
	"a variable that may be absent":             {`previous.text == ""`, `write previous.?text.orValue('')`, 1, 1},
	"an optional that is no path":               {`optional.of(1)`, "this may be absent: write .orValue(0) after it", 1, 12},
	"an optional function of a plain selection": {`nodes.maybe.output.hasValue()`, "nodes.maybe.output may be absent: write nodes.maybe.?output", 1, 1},
	"orValue of a plain selection":              {`nodes.gate.output.approved.orValue(true)`, "nodes.gate.output.approved may be absent: write nodes.gate.?output.?approved", 1, 1},
	"optMap of a plain selection":               {`nodes.gate.output.optMap(o, o.by).orValue('')`, "nodes.gate.output may be absent: write nodes.gate.?output", 1, 1},
	"a list that may be absent, in a loop":      {`nodes.sure.output.tags.map(t, nodes.maybe.output.tags.size())`, "nodes.maybe.output.tags may be absent: write nodes.maybe.?output.?tags.orValue([])", 1, 31},
	"has of what is in something absent":        {`has(nodes.maybe.output.note)`, "nodes.maybe.output may be absent: write has(nodes.maybe.?output.note)", 1, 5},
	"tested after it is read":                   {`nodes.sure.output.note == '' || has(nodes.sure.output.note)`, "nodes.sure.output.note may be absent", 1, 1},
	"tested for the other branch":               {`has(nodes.sure.output.note) ? '' : nodes.sure.output.note`, "nodes.sure.output.note may be absent", 1, 36},
	"tested in a condition that may be false":   {`(has(nodes.sure.output.note) || run.name == '') && nodes.sure.output.note == ''`, "nodes.sure.output.note may be absent", 1, 52},
	"another field tested":                      {`has(nodes.sure.output.note) && nodes.sure.output.weight > 0.5`, "nodes.sure.output.weight may be absent", 1, 32},
	"tested of another variable of that name":   {`has(nodes.sure.output.note) && nodes.items.output.exists(nodes, nodes.?output.?note.orValue('') == '')`, "there is no field output", 1, 72},
	"a field of an item by its number":          {`nodes.sure.output.files[1 + 0].lines`, "nodes.sure.output.files may be absent", 1, 1},
	"a field of a value that is worked out":     {`nodes.sure.output.?files.orValue([])[0].lines > 3`, "lines may be absent: write .?lines.orValue(0)", 1, 1},
	"an optional key of something absent":       {`input.limit`, "input.limit may be absent: write input.?limit.orValue(0)", 1, 1},
	"a state that there is not":                 {`nodes.sure.state == 'Success'`, "'Success' is not a value of nodes.sure.state, which must be one of Waiting, Running, Succeeded, Failed, Skipped, NotReached; did you mean Succeeded?", 1, 21},
	"a state in lower case":                     {`'failed' != nodes.sure.state`, "did you mean Failed?", 1, 1},
	"one of several states":                     {`nodes.sure.state in ['Failed', 'Canceled']`, "'Canceled' is not a value of nodes.sure.state", 1, 32},
	"a value that a schema does not list":       {`nodes.sure.output.?mood.orValue('none') == 'gald'`, "'gald' is not a value of nodes.sure.output.mood, which must be one of glad, sad, none; did you mean glad?", 1, 44},
	"the same with value()":                     {`nodes.sure.output.?mood.value() == 'none'`, "'none' is not a value of nodes.sure.output.mood, which must be one of glad, sad", 1, 36},
	"a double compared with an int":             {`input.ratio == 3`, "== does not go between a double and an int; write double(…) around the int, or 2.0 for 2", 1, 1},
	"numbers of a choice":                       {`true ? 1 : 2.5`, "these are an int and a double; write double(…) around the int, or 2.0 for 2", 1, 8},
	"an int for a double":                       {`nodes.maybe.?output.?weight.orValue(1)`, "this is an int, and nodes.maybe.output.weight is an optional(double); write double(…) around the int", 1, 37},
	"a quantity as a value":                     {`quantity('1Gi')`, "this is a quantity, which JSON has no type for; compare it", 1, 9},
	"an address as a value":                     {`ip('10.0.0.1')`, "this is an IP address, which JSON has no type for; write string(…)", 1, 3},
	"a duration that is none":                   {`duration('90')`, "invalid duration argument; write duration('90m')", 1, 10},
	"a pattern that is none, looked for":        {`input.goal.find('(')`, "the syntax is RE2", 1, 17},
	"optional elements of an optional":          {`nodes.items.output[?2].?score.orValue(9)`, "nodes.items.output[2] is an optional in an optional; write .orValue(optional.none()) after it", 1, 1},
	"orValue of what is there":                  {`nodes.sure.output.score.orValue(1)`, "nodes.sure.output.score is never absent: remove .orValue(…)", 1, 1},
	"orValue of another type":                   {`nodes.maybe.?output.?score.orValue("x")`, "this is a string, and nodes.maybe.output.score is an optional(int)", 1, 36},
	"a field that is not there":                 {`nodes.sure.output.scor > 1`, "there is no field scor; nodes.sure.output has author, counts, extra, files, mood, note, score, tags, verdict, weight; did you mean score?", 1, 19},
	"a field that is not there, optionally":     {`nodes.maybe.output.?scor.orValue(1)`, "there is no field scor; nodes.maybe.output has", 1, 21},
	"has of a field that is not there":          {`has(nodes.sure.outputs)`, "there is no field outputs; nodes.sure has output, state, text; did you mean output?", 1, 16},
	"a node that is not there":                  {"true &&\n  nodes.unsure.state == ''", "there is no field unsure; nodes has gate, items, maybe, sure; did you mean sure?", 2, 9},
	"a variable that is not there":              {`node.sure`, "there is no node; an expression here reads input, item, nodes, previous, run; did you mean nodes?", 1, 1},
	"a Secret, as in other programs":            {`secrets.token`, "there is no secrets; an expression here reads input, item, nodes, previous, run; no prompt or input has the value of a Secret: name the Secret in the Model or Toolset that needs it", 1, 1},
	"a variable of another expression":          {`self.text`, "self is read in loop.until only", 1, 1},
	"text without quotes":                       {`input.goal == ship`, "there is no ship; an expression here reads input, item, nodes, previous, run; strings need quotes, as in 'ship'", 1, 15},
	"a function that is not there":              {`input.goal.startswith("x")`, "there is no function startswith; did you mean startsWith?", 1, 22},
	"all nodes":                                 {`[nodes].map(n, n.sure)`, "nodes cannot be used as a whole, name one: nodes has gate, items, maybe, sure", 1, 2},
	"a node with a minus":                       {`nodes.not-there`, "there is no field not; nodes has", 1, 7},
	"an index of an object":                     {`nodes.sure.output["score"]`, "nodes.sure.output is an object: write nodes.sure.output.score", 1, 1},
	"a field of a number":                       {`nodes.sure.output.score.x`, "nodes.sure.output.score is an int and has no fields", 1, 1},
	"a number after text":                       {`input.goal + 1`, "+ does not go between a string and an int; write string(…) around the other value", 1, 1},
	"numbers of two kinds, added":               {`input.ratio * 2`, "* does not go between a double and an int; write double(…) around the int, or 2.0 for 2", 1, 1},
	"text compared with a number":               {`input.goal == 1`, "== does not go between a string and an int; strings need quotes, numbers do not", 1, 1},
	"two types of one value":                    {`true ? 1 : "x"`, "both values of ?: must be of one type; these are an int and a string", 1, 8},
	"a condition that is none":                  {`input.depth ? 1 : 2`, "the condition before ? must be a bool; input.depth is an int", 1, 1},
	"a number in a condition":                   {`true && input.depth`, "input.depth must be a bool; it is an int", 1, 9},
	"a loop over a number":                      {`input.depth.map(x, x)`, "input.depth is an int, not a list", 1, 1},
	"a name that is no text":                    {`{1: 2}`, "the keys of an object must be strings; this is an int", 1, 2},
	"an optional's function of nothing":         {`hasValue()`, "hasValue does not accept ()", 1, 9},
	"orValue of nothing":                        {`nodes.maybe.?output.orValue()`, "orValue does not accept (an optional(Review))", 1, 1},
	"a pattern that is none":                    {`input.goal.matches("(")`, "the syntax is RE2", 1, 20},
	"a pattern of large numbers":                {`input.goal.matches("((x{100}){10}){10}x{100}" + "")  || input.goal.matches("` + strings.Repeat("x{999}", 50) + `")`, "the pattern is too large: it compiles to about 50000 instructions; at most 10000 are allowed. Use smaller numbers in {}, or fewer of them", 1, 76},
	"bytes":                                     {`b"x"`, "this is bytes, which JSON has no type for; write string(…)", 1, 1},
	"a message of Protocol Buffers":             {`google.protobuf.Struct{}`, "there is no google.protobuf.Struct", 1, 23},
	"an object by its type's name":              {`Review{score: 1}`, "there is no Review", 1, 7},
	"one equals sign":                           {`input.goal = "x"`, "write ==", 1, 12},
	"a word for &&":                             {`true and true`, "write &&", 1, 6},
	"quotes that are not closed":                {`"open`, "close the quotes", 1, 1},
	"half an expression":                        {`1 +`, "the expression is incomplete", 1, 4},
	"marks of a template":                       {`${{ nodes.sure }}`, "this is an expression already: leave out ${{ and }}", 1, 1},
	"a field whose name is CEL's own":           {"item.in == 1", "write `in`, in backticks", 1, 6},
	"another of these":                          {"item.null == 1", "write `null`, in backticks", 1, 6},
	"nothing":                                   {" \n", "the expression is empty; write one, for example true", 1, 1},
	"too much of it":                            {strings.Repeat("1+", 3000) + "1", "the expression is longer than 4096 characters", 1, 1},
	"brackets in brackets":                      {strings.Repeat("[", 100) + strings.Repeat("]", 100), "the expression is nested deeper than 50", 1, 1},
}

func TestRefused(t *testing.T) {
	env := newEnv(t)
	for name, tt := range refused {
		t.Run(name, func(t *testing.T) {
			_, err := env.Compile(tt.text, expr.Dyn())
			if err == nil {
				t.Fatalf("%s compiles", tt.text)
			}
			if !strings.Contains(err.Message, tt.want) || err.Line != tt.line || err.Column != tt.column {
				t.Errorf("got %d:%d: %s\nwant %d:%d: %s", err.Line, err.Column, err.Message, tt.line, tt.column, tt.want)
			}
			if strings.Contains(err.Message, "@") || !strings.Contains(err.Error(), "column") {
				t.Errorf("not for people: %v", err)
			}
		})
	}
}

// accepted has expressions with their types and values.
var accepted = map[string]struct{ text, typ, want string }{
	"a field":                                  {`nodes.sure.output.score > 3`, "bool", `true`},
	"an output as a whole":                     {`nodes.sure.output.tags`, "list(string)", `["a","b"]`},
	"what is absent, with what is in place":    {`nodes.maybe.?output.?score.orValue(-1)`, "int", `-1`},
	"what is in an optional is optional":       {`nodes.maybe.?output.score.orValue(-1)`, "int", `-1`},
	"tested, and then read":                    {`has(nodes.sure.output.note) && nodes.sure.output.note == 'fine'`, "bool", `true`},
	"tested, in a choice":                      {`!has(nodes.sure.output.note) ? 'none' : nodes.sure.output.note`, "string", `"fine"`},
	"tested, or else":                          {`!has(nodes.maybe.output) || nodes.maybe.output.score > 3`, "bool", `true`},
	"two tested":                               {`has(nodes.maybe.output) && has(nodes.maybe.output.note) ? nodes.maybe.output.note : '-'`, "string", `"-"`},
	"a field tested, and what it is in":        {`has(nodes.maybe.?output.note) ? nodes.maybe.output.note : '-'`, "string", `"-"`},
	"tested by hasValue":                       {`nodes.gate.?output.hasValue() && nodes.gate.output.approved`, "bool", `true`},
	"tested for each":                          {`nodes.sure.output.?files.orValue([]).filter(f, has(f.lines) && f.lines > 2).map(f, f.path)`, "list(string)", `["x.go"]`},
	"a state":                                  {`nodes.sure.state == 'Succeeded' && nodes.maybe.state in ['Skipped', 'Failed']`, "bool", `true`},
	"a value that a schema lists":              {`nodes.sure.output.?mood.orValue('none') in ['glad', 'none']`, "bool", `true`},
	"marks everywhere":                         {`nodes.?maybe.?output.?note.orValue("none")`, "string", `"none"`},
	"whether it is there":                      {`[nodes.maybe.?output.hasValue(), nodes.gate.?output.hasValue()]`, "list(bool)", `[false,true]`},
	"has":                                      {`[has(nodes.maybe.output), has(nodes.maybe.?output.note), has(nodes.sure.output.note), has(item.name), has(item.nope)]`, "list(bool)", `[false,false,true,true,false]`},
	"a field of a field that may be absent":    {`nodes.sure.output.?author.name.orValue("")`, "string", `"Ann"`},
	"a name with a minus":                      {"has(nodes.sure.output.author) && has(nodes.sure.output.author.`mail-address`) ? nodes.sure.output.author.`mail-address` : ''", "string", `"a@b"`},
	"a name with a minus, optionally":          {"nodes.sure.output.?author.?`mail-address`.orValue('')", "string", `"a@b"`},
	"a name that is CEL's own":                 {"{\"in\": 3}.`in`", "int", `3`},
	"optMap":                                   {`nodes.gate.?output.optMap(o, o.by + "!").orValue("nobody")`, "string", `"ann!"`},
	"optFlatMap":                               {`nodes.sure.output.?author.optFlatMap(a, a.?name).or(optional.of("x")).value()`, "string", `"Ann"`},
	"optMap within optMap":                     {`nodes.gate.?output.optMap(o, optional.of(1).optMap(p, [o.by, string(p)]).orValue([])).orValue([])`, "list(string)", `["ann","1"]`},
	"optMap of nothing":                        {`nodes.maybe.?output.optMap(o, o.score).orValue(5)`, "int", `5`},
	"items that may be absent":                 {`nodes.items.output.map(r, r.?score.orValue(0))`, "list(int)", `[1,0,3]`},
	"items that are there":                     {`nodes.items.output.filter(r, r.hasValue()).map(r, r.value().score)`, "list(int)", `[1,3]`},
	"items unwrapped":                          {`nodes.items.output.unwrapOpt().map(r, r.score)`, "list(int)", `[1,3]`},
	"an item by its number":                    {`[nodes.items.output[0].?score.orValue(9), nodes.items.output[1].?score.orValue(9)]`, "list(int)", `[1,9]`},
	"an item that may not be there":            {`[nodes.items.output[?2].orValue(optional.none()).?score.orValue(9), nodes.items.output[?7].orValue(optional.none()).?score.orValue(9)]`, "list(int)", `[3,9]`},
	"an item as an optional":                   {`[nodes.items.output[0].hasValue(), nodes.items.output[1].hasValue()]`, "list(bool)", `[true,false]`},
	"items where absent ones keep their place": {`nodes.items.output.map(r, r.?score)`, "list(optional(int))", `[1,null,3]`},
	"a list that may be absent":                {`nodes.sure.output.?files.orValue([]).map(f, f.?lines.orValue(0))`, "list(int)", `[3,0]`},
	"an item of a list that may be absent":     {`nodes.sure.output.?files[?0].?path.orValue("")`, "string", `"x.go"`},
	"a map that may be absent":                 {`nodes.sure.output.?counts.?x.orValue(0) + nodes.sure.output.?counts[?"y"].orValue(4)`, "int", `5`},
	"an object in place of one":                {`nodes.maybe.?output.hasValue() ? dyn(nodes.maybe.output) : dyn({})`, "any", `{}`},
	"either of two":                            {`nodes.maybe.?output.or(nodes.gate.?output.optMap(o, nodes.sure.output)).?score.orValue(0)`, "int", `7`},
	"a choice of items":                        {`(true ? nodes.items.output[0] : nodes.items.output[1]).?score.orValue(0)`, "int", `1`},
	"a double compared with an int":            {`[input.ratio > 2, input.ratio < 4, input.ratio == double(3)]`, "list(bool)", `[true,true,true]`},
	"an int of 64 bits":                        {`input.depth + 1`, "int", `9007199254740994`},
	"any value":                                {`input.any.list.map(x, x)`, "list(any)", `[1,2,3]`},
	"a whole number of any value":              {`item.size + 1`, "int", `4`},
	"an object of values of many types":        {`{"b": 1, "a": "x", "c": nodes.maybe.?output, ?"d": nodes.maybe.?output.?score, ?"e": nodes.sure.output.?weight}`, "map(any)", `{"a":"x","b":1,"e":0.5}`},
	"a key that is worked out":                 {`{run.name: 1, "x" + run.name: 2}`, "map(int)", `{"r-1":1,"xr-1":2}`},
	"times":                                    {`[string(duration("90m")), string(timestamp("2024-01-02T03:04:05Z") + duration("1s"))]`, "list(string)", `["5400s","2024-01-02T03:04:06Z"]`},
	"a duration":                               {`duration("90m")`, "string", `"5400s"`},
	"a timestamp":                              {`timestamp("2024-01-02T03:04:05Z")`, "string", `"2024-01-02T03:04:05Z"`},
	"text of HTML and of none":                 {`"<a> & é \u2028 \"q\""`, "string", `"<a> & é \u2028 \"q\""`},
	"strings":                                  {`"a-b".split("-").join("+").replace("+", "--").upperAscii().substring(1).reverse()`, "string", `"B--"`},
	"format":                                   {`"%s-%d-%.1f".format(["a", 3, 2.55])`, "string", `"a-3-2.5"`},
	"lists":                                    {`lists.range(3).map(i, [i, i]).flatten().distinct().sort().slice(1, 3)`, "list(int)", `[1,2]`},
	"lists of lists":                           {`[[3], [1]].sortBy(x, x[0])[0] + [1] + [2]`, "list(int)", `[1,1,2]`},
	"math":                                     {`math.greatest(1, 2) + math.least(3, 4)`, "int", `5`},
	"sets":                                     {`sets.contains([1, 2], [1]) && !sets.intersects([1], [2]) && sets.equivalent([1], [1, 1])`, "bool", `true`},
	"lists, Kubernetes'":                       {`[[3, 1].sum(), [3, 1].max(), [3, 1, 3].lastIndexOf(3), [1, 2].isSorted() ? 1 : 0, [3].includes(3) ? 1 : 0]`, "list(int)", `[4,3,2,1,1]`},
	"sums":                                     {`[[].sum(), nodes.items.output.map(r, r.?score.orValue(0)).sum(), int([0.5, 1.0].sum() * 2.0)]`, "list(int)", `[0,4,3]`},
	"regex":                                    {`'a1b22'.findAll('[0-9]+') + ['a1'.find('[0-9]')]`, "list(string)", `["1","22","1"]`},
	"url":                                      {`url('https://x.org:80/p?a=b').getHost() + url('http://x/p?a=b').getQuery()['a'][0]`, "string", `"x.org:80b"`},
	"quantity":                                 {`quantity('1Gi').isGreaterThan(quantity('1000Mi')) && quantity('2k').asInteger() == 2000 && quantity('1').add(2) == quantity('3')`, "bool", `true`},
	"ip and cidr":                              {`cidr('10.0.0.0/8').containsIP('10.1.2.3') && ip('::1').isLoopback() && string(ip('10.0.0.1')) == '10.0.0.1'`, "bool", `true`},
	"semver":                                   {`semver('1.2.3').isLessThan(semver('v1.10', true)) && semver('1.2.3').minor() == 2`, "bool", `true`},
	"named formats":                            {`!format.dns1123Label().validate('my-name').hasValue() && format.named('uuid').value().validate('x').hasValue()`, "bool", `true`},
	"two variables":                            {`[{'b': 2, 'a': 1}.transformList(k, v, k + string(v)), ['x'].transformList(i, v, string(i) + v), input.any.list.exists(i, v, v == 2) ? ['y'] : []]`, "list(list(string))", `[["a1","b2"],["0x"],["y"]]`},
	"maps of two variables":                    {`{'b': 2, 'a': 1}.transformMap(k, v, v * 2)`, "map(int)", `{"a":2,"b":4}`},
	"a map with other keys":                    {`['x', 'y'].transformMapEntry(i, v, {v: i})`, "map(int)", `{"x":0,"y":1}`},
	"a pattern":                                {`"abc".matches("^a.c$") && "abc".matches(["a"][0] + "b")`, "bool", `true`},
	"in":                                       {`"a" in nodes.sure.output.tags && "x" in {"x": 1} && !("z" in nodes.sure.output.tags)`, "bool", `true`},
	"equal objects":                            {`nodes.sure.output == nodes.sure.output && nodes.sure.output.?note == nodes.sure.output.?note`, "bool", `true`},
	"types":                                    {`type(item.size) == int`, "bool", `true`},
	"names of an object, in order":             {`[{"c": 1, "a": 2, "b": 3}.map(k, k), input.any.map(k, k), nodes.sure.output.?extra.orValue({}).map(k, k)]`, "list(list(any))", `[["a","b","c"],["list","n"],["deep"]]`},
	"an object as text":                        {`"%s".format([{"c": 1, "a": 2, "b": 3}])`, "string", `"{a: 2, b: 3, c: 1}"`},
	"null":                                     {`null`, "any", `null`},
	"a variable of a loop named as another":    {`[1].map(nodes, nodes + 1)`, "list(int)", `[2]`},
	"lines and comments":                       {"nodes.sure.output.score // the score\n  > 3", "bool", `true`},
}

func TestAccepted(t *testing.T) {
	env := newEnv(t)
	for name, tt := range accepted {
		t.Run(name, func(t *testing.T) {
			p, err := env.Compile(tt.text, expr.Dyn())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.typ, p.Type().String()); diff != "" {
				t.Errorf("type (-want +got):\n%s", diff)
			}
			for range 2 { // a program is used again
				got, err := p.Eval(values())
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, string(got)); diff != "" {
					t.Errorf("value (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestFailsAtRunTime(t *testing.T) {
	env := newEnv(t)
	for name, tt := range map[string]struct{ text, want string }{
		"a key that is not there":   {`1 + item.nope`, `column 5 of "1 + item.nope": there is no field nope`},
		"an index out of range":     {`nodes.sure.output.tags[5]`, "the list has no item 5"},
		"a division by zero":        {`1 / (item.size - 3)`, "division by zero"},
		"a value of another type":   {`item.name + 1`, "a value has another type than the expression expects"},
		"value() of what is absent": {`nodes.maybe.?output.value()`, "value() of an absent value; write orValue(…)"},
		"a number without end":      {`1.0 / 0.0`, "JSON cannot represent the number +Inf"},
		"bytes in a list":           {`[b"x"]`, "JSON has no type for bytes"},
		"a type in a list":          {`[int]`, "JSON has no type for a type"},
		"no value at all":           {`[dyn(1), nodes.items.output[1]][1]`, "there is no value"},
		"a sum beyond 64 bits":      {`9223372036854775807 + item.size`, "overflow"},
		"a pattern of another's":    {`"x".matches(item.name + "(")`, "error parsing regexp"},
		"a loop over what has none": {`item.size.map(x, x)`, "a value is not a list"},
	} {
		t.Run(name, func(t *testing.T) {
			p, e := env.Compile(tt.text, expr.Dyn())
			if e != nil {
				t.Fatal(e)
			}
			got, err := p.Eval(values())
			if err == nil {
				t.Fatalf("no error: %s", got)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, want %q", err, tt.want)
			}
		})
	}
}

func TestWant(t *testing.T) {
	env := newEnv(t)
	input := expr.Object("Input", map[string]expr.Type{"score": expr.Int(), "verdict": expr.String(), "note": expr.Optional(expr.String())})
	for name, tt := range map[string]struct {
		text string
		want expr.Type
		says string
	}{
		"a condition":                           {`nodes.sure.output.score > 3`, expr.Bool(), ""},
		"a condition known when there":          {`input.any`, expr.Bool(), ""},
		"text for a condition":                  {`nodes.sure.output.verdict`, expr.Bool(), "this must be a bool; it is a string; compare it, as in x == '…'"},
		"a number for a condition":              {`nodes.sure.output.score`, expr.Bool(), "this must be a bool; it is an int; compare it, as in x > 3"},
		"what is absent for a condition":        {`nodes.gate.output.approved`, expr.Bool(), "nodes.gate.output.approved may be absent"},
		"a list":                                {`nodes.sure.output.tags`, expr.List(expr.Dyn()), ""},
		"text for a list":                       {`nodes.sure.output.verdict`, expr.List(expr.Dyn()), "this must be a list(any); it is a string"},
		"a list of another":                     {`nodes.sure.output.tags`, expr.List(expr.Int()), "this must be a list(int); it is a list(string)"},
		"a list of what may be absent":          {`nodes.items.output`, expr.List(review(t)), "this must be a list(Review); it is a list(optional(Review))"},
		"an int for a double":                   {`1`, expr.Double(), ""},
		"a double for an int":                   {`1.5`, expr.Int(), "this must be an int; it is a double"},
		"a number for text":                     {`1`, expr.String(), "this must be a string; it is an int; write string(…)"},
		"an object of one's own":                {`nodes.sure.output`, review(t), ""},
		"an object that has what another needs": {`nodes.sure.output`, input, ""},
		"an object that lacks it":               {`input`, input, "which has no field score"},
		"an object with a field that may be absent": {
			`nodes.sure.output`, expr.Object("Input", map[string]expr.Type{"note": expr.String()}), "whose field note may be absent",
		},
		"a literal for an object":     {`{"score": 1}`, input, ""},
		"an object for a map":         {`nodes.sure.output`, expr.Map(expr.Dyn()), ""},
		"an optional where it may be": {`nodes.maybe.?output.?score`, expr.Optional(expr.Int()), ""},
		"one that is not marked":      {`nodes.maybe.output.score`, expr.Optional(expr.Int()), "nodes.maybe.output.score may be absent: write nodes.maybe.?output.?score"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := env.Compile(tt.text, tt.want)
			switch {
			case err == nil && tt.says != "":
				t.Errorf("it compiles; want %s", tt.says)
			case err != nil && (tt.says == "" || !strings.Contains(err.Message, tt.says)):
				t.Errorf("got %v, want %q", err, tt.says)
			}
		})
	}
}

func TestValueThatIsNotWhatIsWanted(t *testing.T) {
	env := newEnv(t)
	p, e := env.Compile("item", expr.List(expr.Dyn()))
	if e != nil {
		t.Fatal(e)
	}
	if _, err := p.Eval(values()); err == nil || !strings.Contains(err.Error(), "the value must be a list(any); it is an object") {
		t.Error(err)
	}
	if p, e = env.Compile("item.name", expr.Bool()); e != nil {
		t.Fatal(e)
	}
	if _, err := p.Bool(values()); err == nil || !strings.Contains(err.Error(), "the value must be a bool; it is a string") {
		t.Error(err)
	}
	if p, e = env.Compile("item.size == 3", expr.Bool()); e != nil {
		t.Fatal(e)
	}
	if ok, err := p.Bool(values()); !ok || err != nil {
		t.Error(ok, err)
	}
}
