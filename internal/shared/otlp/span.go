package otlp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A TraceID names a trace.
type TraceID [16]byte

// A SpanID names a span. The zero SpanID names none.
type SpanID [8]byte

// TraceOf returns the trace of a Run that has no parent: its UID without the dashes. What is
// not a UUID is hashed.
func TraceOf(uid string) (id TraceID) {
	if digits := strings.ReplaceAll(uid, "-", ""); len(digits) == 2*len(id) {
		if _, err := hex.Decode(id[:], []byte(digits)); err == nil && id != (TraceID{}) {
			return id
		}
	}
	hash := sha256.Sum256([]byte(uid))
	copy(id[:], hash[:])
	return id
}

// SpanOf returns the span of a Run, or with more elements that of something in it.
func SpanOf(uid string, elements ...string) (id SpanID) {
	hash := sha256.New()
	for _, e := range append([]string{uid}, elements...) {
		hash.Write([]byte(e))
		hash.Write([]byte{0})
	}
	copy(id[:], hash.Sum(nil))
	return id
}

// A Span is work with a beginning and an end.
type Span struct {
	Trace      TraceID
	ID, Parent SpanID
	Name       string
	// Client marks a request to another process.
	Client     bool
	Start, End time.Time
	Attributes []Attribute
	// Failed sets the status Error.
	Failed bool
}

// An Attribute has a value that is a string, an int64, a float64, or a []string.
type Attribute struct {
	Key   string
	Value any
}

// encode returns spans of one process as an ExportTraceServiceRequest. TracesData has the same
// form in protobuf, and does not import gRPC.
func encode(of []Attribute, spans []Span) ([]byte, error) {
	scope := &trace.ScopeSpans{Scope: &common.InstrumentationScope{Name: "deckhand"}}
	for i := range spans {
		scope.Spans = append(scope.Spans, spans[i].encode())
	}
	return proto.Marshal(&trace.TracesData{ResourceSpans: []*trace.ResourceSpans{{
		Resource: &resource.Resource{Attributes: encodeAttributes(of)}, ScopeSpans: []*trace.ScopeSpans{scope},
	}}})
}

func (s *Span) encode() *trace.Span {
	out := &trace.Span{
		TraceId: s.Trace[:], SpanId: s.ID[:], Name: s.Name, Kind: trace.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: nanoseconds(s.Start), EndTimeUnixNano: max(nanoseconds(s.Start), nanoseconds(s.End)),
		Attributes: encodeAttributes(s.Attributes),
	}
	if s.Parent != (SpanID{}) {
		out.ParentSpanId = s.Parent[:]
	}
	if s.Client {
		out.Kind = trace.Span_SPAN_KIND_CLIENT
	}
	if s.Failed {
		out.Status = &trace.Status{Code: trace.Status_STATUS_CODE_ERROR}
	}
	return out
}

// nanoseconds returns the Unix time; 0 if it is before 1970 or unknown.
func nanoseconds(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(max(t.UnixNano(), 0))
}

func encodeAttributes(all []Attribute) []*common.KeyValue {
	out := make([]*common.KeyValue, 0, len(all))
	for _, a := range all {
		out = append(out, &common.KeyValue{Key: a.Key, Value: encodeValue(a.Value)})
	}
	return out
}

func encodeValue(v any) *common.AnyValue {
	switch v := v.(type) {
	case string:
		return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: strings.ToValidUTF8(v, "\uFFFD")}}
	case int64:
		return &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: v}}
	case float64:
		return &common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: v}}
	case []string:
		list := &common.ArrayValue{}
		for _, s := range v {
			list.Values = append(list.Values, encodeValue(s))
		}
		return &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: list}}
	}
	return &common.AnyValue{}
}
