package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Schedule makes Runs by the clock.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=dsched,categories=deckhand
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Time Zone",type=string,JSONPath=`.spec.timeZone`
// +kubebuilder:printcolumn:name="Suspend",type=boolean,JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Active",type=integer,JSONPath=`.status.active`
// +kubebuilder:printcolumn:name="Last",type=date,JSONPath=`.status.lastScheduleTime`
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextScheduleTime`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52 && !self.metadata.name.contains('.')",message="the name of a Schedule is at most 52 lower-case letters, digits and -: it begins the names of its Runs"
type Schedule struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is when, and what.
	// +required
	Spec ScheduleSpec `json:"spec"`

	// status is when it was, and when it will be.
	// +kubebuilder:default={conditions:{{type:"Ready",status:"Unknown",reason:"Pending",message:"Waiting for the operator",lastTransitionTime:"1970-01-01T00:00:00Z"}}}
	// +optional
	Status ScheduleStatus `json:"status,omitempty"`
}

// ScheduleSpec is when Runs are made, and which.
type ScheduleSpec struct {
	// schedule is a time in cron's form: minute, hour, day of the month, month, day
	// of the week; or @hourly, @daily, @weekly, @monthly, @yearly. What is none
	// makes the Schedule not Ready, reason ScheduleInvalid.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="!self.contains('TZ=')",message="write the time zone as timeZone: Europe/Berlin"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('@every')",message="@every has no fixed times: write minutes and hours, for example */15 * * * *"
	// +required
	Schedule string `json:"schedule"`

	// timeZone is the name of a time zone: Europe/Berlin. A time that is skipped when the
	// clocks change is skipped; a time that occurs twice counts once. Default UTC.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`

	// concurrencyPolicy is what happens when it is time and a Run is still active.
	// Allow: another begins. Forbid: this time is left out, and told. Replace: the
	// active one is stopped, and the new one begins when it has ended. Default
	// Forbid.
	// +kubebuilder:validation:Enum=Allow;Forbid;Replace
	// +kubebuilder:default=Forbid
	// +optional
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// suspend makes no more Runs while it is true; times that pass meanwhile are
	// not made up for. Default false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// startingDeadline is how late a Run may still be created, for example after the
	// operator was away. Later the time counts as missed, and an event says so. If several
	// times have passed, the last one counts. Default 10m.
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('^([0-9]{1,7}(h|m|s))+$') || duration(string(self)) >= duration('10s')",message="must be at least 10s"
	// +optional
	StartingDeadline Duration `json:"startingDeadline,omitempty"`

	// jitter is the most that each time is put off by, always the same for one
	// Schedule, so that many at one hour do not begin at once. Default 0s.
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('^([0-9]{1,7}(h|m|s))+$') || duration(string(self)) <= duration('24h')",message="must be at most 24h"
	// +optional
	Jitter *Duration `json:"jitter,omitempty"`

	// successfulRunsHistoryLimit is how many Runs that did their work are kept.
	// Default 3.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=3
	// +optional
	SuccessfulRunsHistoryLimit *int32 `json:"successfulRunsHistoryLimit,omitempty"`

	// failedRunsHistoryLimit is how many Runs that failed are kept. Default 5.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=5
	// +optional
	FailedRunsHistoryLimit *int32 `json:"failedRunsHistoryLimit,omitempty"`

	// runTemplate is what is made.
	// +required
	RunTemplate RunTemplate `json:"runTemplate"`
}

// RunTemplate is what a Schedule makes.
type RunTemplate struct {
	// labels of each Run. Those of deckhand.dev are its own.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^([^/]*[.])?deckhand[.]dev/'))",message="labels of deckhand.dev are Deckhand's own: choose another prefix"
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && size(self[k]) <= 63)",message="a label has a name of at most 317 characters and a value of at most 63"
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// spec of each Run.
	// +required
	Spec RunSpec `json:"spec"`
}

// ConcurrencyPolicy is what happens when it is time and a Run is still active.
type ConcurrencyPolicy string

// The concurrency policies.
const (
	ConcurrencyAllow   ConcurrencyPolicy = "Allow"
	ConcurrencyForbid  ConcurrencyPolicy = "Forbid"
	ConcurrencyReplace ConcurrencyPolicy = "Replace"
)

// ScheduleStatus is when it was, and when it will be.
type ScheduleStatus struct {
	// observedGeneration is the generation that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// active is how many of its Runs are active.
	// +optional
	Active int32 `json:"active,omitempty"`
	// lastScheduleTime is the last time that a Run was made for.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
	// lastSuccessfulTime is when a Run of it last finished its work.
	// +optional
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`
	// nextScheduleTime is when the next Run is made, jitter included; empty while
	// it is suspended or not Ready.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`
	// handledTime is until when all times were seen to: made, left out or missed.
	// +optional
	HandledTime *metav1.Time `json:"handledTime,omitempty"`
	// missed is how many times no Run was made: too late, or another was active.
	// +optional
	Missed int64 `json:"missed,omitempty"`
	// lastMissedTime is the last of them.
	// +optional
	LastMissedTime *metav1.Time `json:"lastMissedTime,omitempty"`
	// conditions holds Ready.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ScheduleList is a list of Schedules.
//
// +kubebuilder:object:root=true
type ScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Schedule `json:"items"`
}
