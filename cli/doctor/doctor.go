// SPDX-License-Identifier: Apache-2.0

// Package doctor finds problems of a cluster that prevent captures, and how to fix them. It is pure.
package doctor

import (
	"fmt"
	"io"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/ringcap/ringcap/cli/fleet"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Severity orders findings.
type Severity string

// The severities.
const (
	// Error means that something that was asked for does not work.
	Error Severity = "Error"
	// Warning means that it works, with loss or worse than it could.
	Warning Severity = "Warning"
	// Note is for information.
	Note Severity = "Note"
)

var order = []Severity{Error, Warning, Note}

// Finding is one problem.
type Finding struct {
	Severity Severity `json:"severity"`
	// What the problem is about: "node worker-1", "CaptureRing mirror".
	What    string `json:"what"`
	Problem string `json:"problem"`
	// Fix is what to do.
	Fix string `json:"fix,omitempty"`
}

// Facts are the input of the checks.
type Facts struct {
	fleet.Snapshot
	// CLI is this program's version.
	CLI string
	// Missing lists the kinds of ringcap.io that the API server does not serve.
	Missing []string
	// Operators and Agents are the installed workloads, selected by the chart's labels; Pods are their pods.
	Operators []appsv1.Deployment
	Agents    []appsv1.DaemonSet
	Pods      []corev1.Pod
	// Pending are pods that wait for a queue.
	Pending []corev1.Pod
	// Temporary are the PodCaptures that captures made, by namespace and name.
	Temporary []v1.PodCapture
	// Unreadable lists what could not be read, and why.
	Unreadable []string
}

// Report is a diagnosis.
type Report struct {
	Checked  []string  `json:"checked"`
	Findings []Finding `json:"findings"`
}

// check is one check; it returns its findings.
type check struct {
	name string
	find func(Facts) []Finding
}

var checks = []check{
	{"custom resources", kinds},
	{"operator", operator},
	{"agents", agents},
	{"nodes report", reporting},
	{"agents answer", answering},
	{"versions", versions},
	{"engines", engines},
	{"rings and clusters", objects},
	{"queues are read", unattended},
	{"queues in line", undecided},
	{"pods that wait for queues", pending},
	{"loss", loss},
	{"orphaned captures", orphans},
}

// Diagnose runs all checks; the worst findings come first.
func Diagnose(f Facts) Report {
	report := Report{Findings: []Finding{}}
	for _, what := range f.Unreadable {
		report.Findings = append(report.Findings, Finding{Warning, "this command", what, "see docs/cli.md for the rights that it needs"})
	}
	for _, c := range checks {
		report.Checked = append(report.Checked, c.name)
		report.Findings = append(report.Findings, c.find(f)...)
		if len(f.Missing) > 0 {
			// Without its kinds no other check makes sense.
			break
		}
	}
	slices.SortStableFunc(report.Findings, func(a, b Finding) int {
		return slices.Index(order, a.Severity) - slices.Index(order, b.Severity)
	})
	return report
}

// Has reports whether there is a finding of a severity.
func (r Report) Has(s Severity) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity == s })
}

// Text prints a report for users.
func Text(w io.Writer, r Report) error {
	for _, f := range r.Findings {
		if _, err := fmt.Fprintf(w, "%-7s  %s: %s\n", f.Severity, f.What, f.Problem); err != nil {
			return err
		}
		if f.Fix != "" {
			if _, err := fmt.Fprintf(w, "         fix: %s\n", f.Fix); err != nil {
				return err
			}
		}
	}
	count := map[Severity]int{}
	for _, f := range r.Findings {
		count[f.Severity]++
	}
	_, err := fmt.Fprintf(w, "%d checks: %d errors, %d warnings, %d notes\n", len(r.Checked), count[Error], count[Warning], count[Note])
	return err
}
