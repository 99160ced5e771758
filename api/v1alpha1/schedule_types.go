package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Schedule creates Runs at fixed times, as a CronJob creates Jobs.
//
// Example:
//
//	apiVersion: deckhand.dev/v1alpha1
//	kind: Schedule
//	metadata: {name: nightly-audit}
//	spec:
//	  schedule: 30 3 * * 1-5
//	  timeZone: Europe/Berlin
//	  runTemplate:
//	    spec:
//	      agent: auditor
//	      prompt: Audit the rules.
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
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52 && !self.metadata.name.contains('.')",message="metadata.name must have at most 52 lower-case letters, digits and -, because the names of its Runs begin with it"
type Schedule struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is when Runs are created, and the template for them.
	// +required
	Spec ScheduleSpec `json:"spec"`

	// status is the observed state of the Schedule.
	// +kubebuilder:default={conditions:{{type:"Ready",status:"Unknown",reason:"Pending",message:"Waiting for the operator",lastTransitionTime:"1970-01-01T00:00:00Z"}}}
	// +optional
	Status ScheduleStatus `json:"status,omitempty"`
}

// ScheduleSpec is when Runs are created, and the template for them.
type ScheduleSpec struct {
	// schedule is the times in cron format: minute, hour, day of the month, month, day of the
	// week; or @hourly, @daily, @weekly, @monthly or @yearly. An invalid value makes the
	// Schedule not Ready, reason Invalid.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'[\x00-\x1f\x7f-\x9f]')`,message="must not have control characters"
	// +kubebuilder:validation:XValidation:rule="!self.contains('TZ=')",message="must not contain a time zone: write timeZone: Europe/Berlin"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('@every')",message="must not be @every, which has no fixed times: write minutes and hours, for example */15 * * * *"
	// +required
	Schedule string `json:"schedule"`

	// timeZone is the name of a time zone, for example Europe/Berlin. A time that is skipped
	// when the clocks change gets no Run; a time that occurs twice gets one. An unknown name
	// makes the Schedule not Ready, reason Invalid. Default UTC.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'[\x00-\x1f\x7f-\x9f]')`,message="must not have control characters"
	// +optional
	TimeZone string `json:"timeZone,omitempty"`

	// concurrencyPolicy is what happens at a time when a Run of the Schedule is still active.
	// Allow: another Run is created. Forbid: no Run is created for this time, and an event says
	// so. Replace: the active Run is stopped, and the new Run is created when it has ended.
	// Default Forbid.
	// +kubebuilder:validation:Enum=Allow;Forbid;Replace
	// +kubebuilder:default=Forbid
	// +optional
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// suspend is true to create no more Runs. Active Runs continue. Times that pass while it is
	// true get no Run later. Default false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// startingDeadline is how late a Run may be created, for example after the operator was
	// unavailable, at least 10s. A later time is missed: it gets no Run, and an event says so.
	// If several times have passed, only the last one gets a Run. Default 10m.
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,7}(h|m|s))+$') || duration(self) >= duration('10s')",message="must be at least 10s: write 10m"
	// +optional
	StartingDeadline Duration `json:"startingDeadline,omitempty"`

	// jitter is the maximum delay of each time, at most 24h, so that many Schedules of the same
	// time do not start together. The delay of one Schedule is always the same. Default 0s.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,7}(h|m|s))+$') || duration(self) <= duration('24h')",message="must be at most 24h: write 10m"
	// +optional
	Jitter *Duration `json:"jitter,omitempty"`

	// successfulRunsHistoryLimit is how many succeeded Runs are kept, 0 to 100. Older ones are
	// deleted. Default 3.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=3
	// +optional
	SuccessfulRunsHistoryLimit *int32 `json:"successfulRunsHistoryLimit,omitempty"`

	// failedRunsHistoryLimit is how many failed Runs are kept, 0 to 100. Older ones are
	// deleted. Default 5.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=5
	// +optional
	FailedRunsHistoryLimit *int32 `json:"failedRunsHistoryLimit,omitempty"`

	// runTemplate is the template of each Run.
	// +required
	RunTemplate RunTemplate `json:"runTemplate"`
}

// RunTemplate is the template of the Runs of a Schedule.
type RunTemplate struct {
	// labels are labels of each Run, at most 16. The prefix deckhand.dev is reserved.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^([^/]*[.])?deckhand[.]dev/'))",message="must not have the prefix deckhand.dev, which is reserved: choose another prefix"
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && size(self[k]) <= 63)",message="the name of a label must have at most 317 characters, and its value at most 63"
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// spec is the spec of each Run. The Agent or Workflow may be created later: a Run waits for
	// it. It has no continueFrom.
	// +kubebuilder:validation:XValidation:rule="!has(self.continueFrom)",message="continueFrom is not allowed in a Schedule: remove continueFrom"
	// +required
	Spec RunSpec `json:"spec"`
}

// ConcurrencyPolicy is what happens at a time when a Run of the Schedule is still active.
type ConcurrencyPolicy string

// The concurrency policies.
const (
	ConcurrencyAllow   ConcurrencyPolicy = "Allow"
	ConcurrencyForbid  ConcurrencyPolicy = "Forbid"
	ConcurrencyReplace ConcurrencyPolicy = "Replace"
)

// ScheduleStatus is the observed state of a Schedule.
type ScheduleStatus struct {
	// observedGeneration is the metadata.generation that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// active is the number of Runs of the Schedule that are active.
	// +optional
	Active int32 `json:"active,omitempty"`
	// lastScheduleTime is the last time for which a Run was created.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
	// lastSuccessfulTime is when a Run of the Schedule last succeeded.
	// +optional
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`
	// nextScheduleTime is when the next Run is created, jitter included. It is empty while the
	// Schedule is suspended or not Ready.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`
	// missed is the number of times without a Run: it was too late, or another Run was active.
	// +optional
	Missed int64 `json:"missed,omitempty"`
	// lastMissedTime is the last time without a Run.
	// +optional
	LastMissedTime *metav1.Time `json:"lastMissedTime,omitempty"`
	// conditions has Ready: spec.schedule and spec.timeZone are valid. For GitOps tools it also
	// has Reconciling and Stalled.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// internal is data that the operator keeps between reconciliations. It is not part of the
	// API: its fields may change in any release.
	// +optional
	Internal ScheduleInternal `json:"internal,omitzero"`
}

// ScheduleInternal is data that the operator keeps between reconciliations. It is not part of
// the API: its fields may change in any release.
type ScheduleInternal struct {
	// handledTime is the time up to which all times are handled: a Run was created, or the time
	// was skipped or missed.
	// +optional
	HandledTime *metav1.Time `json:"handledTime,omitempty"`
}

// ScheduleList is a list of Schedules.
//
// +kubebuilder:object:root=true
type ScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Schedule `json:"items"`
}
