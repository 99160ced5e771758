package main

// A row is one line of a table.
type row struct {
	what string
	of   metric
	// as is the unit in which it is written; empty: a bare number.
	as string
	// over is the divisor if the row is a ratio. Both metrics are of the same run, and the bar is for the ratio.
	over metric
	// extra are more figures of the same benchmark, written after it.
	extra []extraFigure
	bar   bar
}

// An extraFigure is another figure of a row's benchmark.
type extraFigure struct{ unit, as string }

// memory are the figures of the memory that one operation takes.
var memory = []extraFigure{{"B/op", "B"}, {"allocs/op", "allocs"}}

// p99 is written after a median, and the live heap after the memory of a process.
var (
	p99  = []extraFigure{{"p99-ms", "ms"}}
	live = []extraFigure{{"live-MiB", "MiB"}}
	// bothPatches are the figures of the two patches of a trivial Run, which the page shows after their mean.
	bothPatches = []extraFigure{{"result-CPU-ms", "ms"}, {"end-CPU-ms", "ms"}}
	// slowest is the maximum after a median.
	slowest = []extraFigure{{"max-ms", "ms"}}
)

// tables are those of the page, by name.
var tables = map[string][]row{
	"cluster": {
		{
			what: "trivial Run over a bare pod that exits at once, create → terminal as one watcher sees it, median of 10 interleaved pairs",
			of:   metric{"test/bench", "RunOverBarePod", "run-ms"}, as: "ms",
			over: metric{"test/bench", "RunOverBarePod", "pod-ms"}, bar: atMost(0.35),
		},
		{
			what: "trivial Run over a bare pod that asks the same model once, in the same run",
			of:   metric{"test/bench", "RunOverBarePod", "run-ms"}, as: "ms",
			over: metric{"test/bench", "RunOverBarePod", "asking-pod-ms"},
		},
		{what: "created → pod created, median of 10", of: metric{"test/bench", "CreatedToPod", "ms"}, as: "ms", bar: atMost(25)},
		{what: "committed → terminal, median of 10", of: metric{"test/bench", "CommittedToTerminal", "ms"}, as: "ms", bar: atMost(50)},
		{what: "writes to the API by our own components for a trivial Run, all", of: metric{"test/bench", "Writes", "writes"}, bar: atMost(5)},
		{what: "the same before it is terminal", of: metric{"test/bench", "Writes", "writes-before-the-end"}, bar: atMost(2)},
		{
			what: "a workflow of ten trivial nodes in sequence over ten trivial Runs one after another, medians of 3 interleaved",
			of:   metric{"test/bench", "TenNodesOverTenRuns", "nodes-ms"}, as: "ms",
			over: metric{"test/bench", "TenNodesOverTenRuns", "runs-ms"}, bar: atMost(1.15),
		},
	},
	"failover": {
		{what: "another operator was waiting, median and maximum of 10", of: metric{"test/bench", "Failover/another-pod", "median-ms"}, as: "ms", extra: slowest, bar: atMost(10_000)},
		{what: "it is started again in the same pod, median and maximum of 10", of: metric{"test/bench", "Failover/same-pod", "median-ms"}, as: "ms", extra: slowest},
	},
	"scale": {
		{
			what: "throughput of Runs over the throughput of bare pods, all created at once",
			of:   metric{"test/bench", "ScaleThroughput", "runs/s"}, as: "a second",
			over: metric{"test/bench", "ScaleThroughput", "pods/s"}, bar: atLeast(0.35),
		},
		{what: "all created at once: request sent → pod created, p50 and p99", of: metric{"test/bench", "ScaleBurst", "p50-ms"}, as: "ms", extra: p99, bar: atMost(10_000)},
		{what: "API writes of the operator per Run", of: metric{"test/bench", "ScaleCost", "writes/Run"}, bar: atMost(4)},
		{what: "patches of the status of a Run, by operator and runner", of: metric{"test/bench", "ScaleCost", "status-patches/Run"}, bar: atMost(3)},
		{what: "API server CPU for one of them: mean, the runner's result and the operator's end", of: metric{"test/bench", "ScaleWrites", "Run-CPU-ms"}, as: "ms", extra: bothPatches, bar: atMost(3)},
		{
			what: "its mean over a patch of the status of a bare pod",
			of:   metric{"test/bench", "ScaleWrites", "Run-CPU-ms"}, as: "ms", over: metric{"test/bench", "ScaleWrites", "bare-pod-CPU-ms"},
			bar: atMost(2),
		},
		{
			what: "API server CPU for a patch of the status of a Run's pod over one of a bare pod",
			of:   metric{"test/bench", "ScaleWrites", "pod-CPU-ms"}, as: "ms", over: metric{"test/bench", "ScaleWrites", "bare-pod-CPU-ms"},
		},
		{what: "API server CPU for a patch of a ConfigMap, to compare with", of: metric{"test/bench", "ScaleWrites", "ConfigMap-CPU-ms"}, as: "ms"},
		{what: "a Run's pod, as JSON with managed fields", of: metric{"test/bench", "ScaleWrites", "pod-B"}, as: "B", bar: atMost(5 * 1024)},
		{what: "reconciles per Run", of: metric{"test/bench", "ScaleCost", "reconciles/Run"}},
		{what: "`Settle` events per Run", of: metric{"test/bench", "ScaleCost", "settled/Run"}, bar: atMost(1)},
		{what: "operator CPU per Run", of: metric{"test/bench", "ScaleCost", "operator-CPU-ms/Run"}, as: "ms", bar: atMost(10)},
		{
			what: "the same in a burst of 200 Runs beside 10,000 finished ones with their pods and 1,000 active ones, over that in an empty namespace",
			of:   metric{"test/bench", "ScaleNamespace", "beside-CPU-ms/Run"}, as: "ms",
			over: metric{"test/bench", "ScaleNamespace", "alone-CPU-ms/Run"}, bar: atMost(1.2),
		},
		{what: "API server CPU per Run", of: metric{"test/bench", "ScaleCost", "server-CPU-ms/Run"}, as: "ms"},
		{what: "load generator and simulated node CPU per Run", of: metric{"test/bench", "ScaleCost", "node-CPU-ms/Run"}, as: "ms"},
		{what: "operator RSS after these Runs", of: metric{"test/bench", "ScaleCost", "RSS-MiB"}, as: "MiB", bar: atMost(256)},
		{what: "10 Runs/s: request due → pod created, p50 and p99", of: metric{"test/bench", "ScaleDueToPod", "p50-ms"}, as: "ms", extra: p99},
		{what: "10 Runs/s: result sent → Run terminal, p50 and p99", of: metric{"test/bench", "ScaleSentToTerminal", "p50-ms"}, as: "ms", extra: p99},
		{what: "10 Runs/s: delay of the load generator, p50 and p99", of: metric{"test/bench", "ScaleLoad", "p50-ms"}, as: "ms", extra: p99},
		{what: "workflow with all items in parallel, created → terminal", of: metric{"test/bench", "ScaleWorkflow", "ms"}, as: "ms"},
		{what: "operator CPU per item of it", of: metric{"test/bench", "ScaleWorkflow", "operator-CPU-ms/item"}, as: "ms"},
		{what: "API writes of the operator per item of it", of: metric{"test/bench", "ScaleWorkflow", "writes/item"}},
		{what: "Schedules at the same minute: due → Run created, p50 and p99", of: metric{"test/bench", "ScaleSchedules", "p50-ms"}, as: "ms", extra: p99},
		{what: "operator RSS and live heap after a restart, pods kept", of: metric{"test/bench", "ScaleMemory/kept", "RSS-MiB"}, as: "MiB", extra: live, bar: atMost(150)},
		{what: "operator RSS and live heap after a restart, pods of finished Runs removed", of: metric{"test/bench", "ScaleMemory/removed", "RSS-MiB"}, as: "MiB", extra: live, bar: atMost(150)},
		{what: "operator RSS during a restart, maximum, pods kept", of: metric{"test/bench", "ScaleRestart/kept", "peak-MiB"}, as: "MiB", bar: atMost(150)},
		{what: "operator RSS during a restart, maximum, pods of finished Runs removed", of: metric{"test/bench", "ScaleRestart/removed", "peak-MiB"}, as: "MiB", bar: atMost(150)},
		{what: "operator's pod deleted → first pod of a new Run created, pods kept", of: metric{"test/bench", "ScaleRestart/kept", "first-pod-ms"}, as: "ms"},
		{what: "operator's pod deleted → first pod of a new Run created, pods of finished Runs removed", of: metric{"test/bench", "ScaleRestart/removed", "first-pod-ms"}, as: "ms"},
	},
	"program": {
		{what: "start of the process → first byte to the model", of: metric{"runner/internal/programtest", "Start", "ns/op"}, as: "ns", bar: atMost(15e6)},
		{what: "anonymous memory while it waits for the model", of: metric{"runner/internal/programtest", "IdleMemory", "MiB"}, as: "MiB", bar: atMost(12)},
		{what: "image as pulled, without the base (distroless, 0.8 MB)", of: metric{"cmd/runner", "Image", "MB"}, as: "MB", bar: atMost(11.7)},
		{what: "1,000 steps of 20 KB in the journal: start → next model call", of: metric{"runner/internal/programtest", "Resume", "ns/op"}, as: "ns", bar: atMost(300e6)},
		{what: "input read from the prompt cache over 50 steps, OpenAI's API", of: metric{"runner/internal/programtest", "CacheRead/OpenAICompatible", "cache-read-%"}, as: "%", bar: atLeast(90)},
		{what: "the same, Anthropic's API", of: metric{"runner/internal/programtest", "CacheRead/Anthropic", "cache-read-%"}, as: "%", bar: atLeast(90)},
		{what: "resident memory at most in 10,000 steps of 2 KB", of: metric{"runner/internal/programtest", "TenThousandSteps", "MiB-RSS-at-most"}, as: "MiB", bar: atMost(60)},
		{
			what: "anonymous memory after 10,000 steps over that after 1,000",
			of:   metric{"runner/internal/programtest", "TenThousandSteps", "MiB-after-10000"}, as: "MiB",
			over: metric{"runner/internal/programtest", "TenThousandSteps", "MiB-after-1000"}, bar: atMost(2),
		},
		{
			what: "CPU of a step with traces and histograms over a step without them, least of 7 interleaved",
			of:   metric{"runner/internal/programtest", "TenThousandTracedSteps", "with-cpu-ms/step"}, as: "ms",
			over: metric{"runner/internal/programtest", "TenThousandTracedSteps", "without-cpu-ms/step"}, bar: atMost(1.05),
		},
	},
	"parts": {
		{what: "one turn of the loop: scripted model, one call, journal in memory", of: metric{"runner/internal/engine", "Step", "µs/step"}, as: "µs", bar: atMost(30)},
		{
			what: "heap of an agent after 10,000 steps, most of them hidden, over that after 1,000",
			of:   metric{"runner/internal/config", "TenThousandSteps", "heap-KiB-after-10000"}, as: "KiB",
			over: metric{"runner/internal/config", "TenThousandSteps", "heap-KiB-after-1000"}, bar: atMost(1.5),
		},
		{
			what: "a tool call through ten layers over ten calls without any",
			of:   metric{"runner/middleware", "ToolCall/through_10_layers", "ns/op"}, as: "ns",
			over: metric{"runner/middleware", "ToolCall/ten_times_directly", "ns/op"}, bar: atMost(2),
		},
		{what: "what those ten layers allocate for a call", of: metric{"runner/middleware", "ToolCall/through_10_layers", "allocs/op"}, as: "allocs", bar: atMost(0)},
		{what: "decoding a stream, OpenAI's API", of: metric{"runner/model/openai", "Stream", "MB/s"}, as: "MB/s", bar: atLeast(60)},
		{what: "decoding a stream, OpenAI's Responses", of: metric{"runner/model/openai/internal/responses", "Stream", "MB/s"}, as: "MB/s", bar: atLeast(60)},
		{what: "decoding a stream, Anthropic's API", of: metric{"runner/model/anthropic", "Stream", "MB/s"}, as: "MB/s", bar: atLeast(60)},
		{what: "an event to eight readers", of: metric{"runner/internal/pubsub", "Publish/to_8_readers", "ns/op"}, as: "ns", bar: atMost(300)},
	},
	"command line": {
		{what: "`kubectl deckhand list` of 10,000 Runs, from a server on loopback that has its answer ready", of: metric{"internal/cli", "List", "ns/op"}, as: "ns", bar: atMost(1e9)},
		{what: "`kubectl deckhand logs`: the log of a pod, printed", of: metric{"internal/cli/conversation", "Write", "MB/s"}, as: "MB/s", bar: atLeast(10)},
	},
	"elsewhere": {
		{what: "copying the list of six tools of one layer (published as a middleware stack)", of: metric{"runner/middleware", "ToolsOfOneLayer", "ns/op"}, as: "ns", extra: memory},
		{what: "a tool call through one layer", of: metric{"runner/middleware", "ToolCall/through_1_layers", "ns/op"}, as: "ns", extra: memory},
		{what: "a tool call through ten layers, composed once", of: metric{"runner/middleware", "ToolCall/through_10_layers", "ns/op"}, as: "ns", extra: memory},
		{what: "the same, composed for each call", of: metric{"runner/middleware", "ToolCall/through_10_layers_composed_for_the_call", "ns/op"}, as: "ns", extra: memory},
		{what: "writing 12 bytes to the state backend in memory (published as a backend's write)", of: metric{"runner/backend/state", "Write/12_bytes_in_memory", "ns/op"}, as: "ns", extra: memory},
		{what: "writing 12 bytes to the state backend in a directory", of: metric{"runner/backend/state", "Write/12_bytes_in_a_directory", "ns/op"}, as: "ns", extra: memory},
		{what: "writing 4 KiB to the workspace", of: metric{"runner/internal/backend/disk", "Write", "ns/op"}, as: "ns", extra: memory},
	},
	"rest": {
		{what: "a record in the journal, fsync included", of: metric{"runner/internal/journal", "Append", "ns/op"}, as: "ns"},
		{what: "reading a journal of 1,000 steps of 20 KB", of: metric{"runner/internal/state", "Replay", "ns/op"}, as: "ns"},
		{what: "redaction", of: metric{"runner/internal/redact", "String", "MB/s"}, as: "MB/s"},
		{what: "Grep over 5,000 files of 4 KiB, an expression", of: metric{"runner/internal/backend/disk", "Grep/expression", "ns/op"}, as: "ns"},
		{what: "a page of the web as Markdown", of: metric{"runner/internal/tool/web/page", "Read", "MB/s"}, as: "MB/s"},
		{what: "detecting loops", of: metric{"runner/internal/loopdetect", "Find", "ns/op"}, as: "ns"},
	},
}
