// SPDX-License-Identifier: Apache-2.0

// Package rules is the source of the recording rules and alerts of ringcap: the chart's PrometheusRule and the file for a
// Prometheus without an operator are written from it by monitoring/generate.
package rules

import (
	"fmt"
	"time"

	"sigs.k8s.io/yaml"
)

// Runbooks is where an alert's runbook is, by its name. The chart replaces it by the value prometheusRule.runbookURL.
const Runbooks = "https://github.com/ringcap/ringcap/blob/main/docs/runbooks"

// Severity is how soon somebody must look.
type Severity string

// The severities: something is not captured; something is wrong and must be fixed in the next days; something could be
// better.
const (
	Critical Severity = "critical"
	Warning  Severity = "warning"
	Info     Severity = "info"
)

// Recording is a recording rule.
type Recording struct {
	// Name by Prometheus' convention level:metric:operations.
	Name string
	Expr string
}

// Alert is an alerting rule.
type Alert struct {
	Name     string
	Expr     string
	For      time.Duration
	Severity Severity
	// Summary is the problem in one line; Description is what it means and what to do. Both are Prometheus templates.
	Summary, Description string
}

// RunbookURL is where the alert's runbook is.
func (a Alert) RunbookURL() string { return fmt.Sprintf("%s/%s.md", Runbooks, a.Name) }

// file is what Prometheus reads.
type file struct {
	Groups []group `json:"groups"`
}

type group struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

type rule struct {
	Record      string            `json:"record,omitempty"`
	Alert       string            `json:"alert,omitempty"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// YAML is the rule file.
func YAML() ([]byte, error) {
	recording, alerting := group{Name: "ringcap.recording"}, group{Name: "ringcap.alerts"}
	for _, r := range Recordings {
		recording.Rules = append(recording.Rules, rule{Record: r.Name, Expr: r.Expr})
	}
	for _, a := range Alerts {
		alerting.Rules = append(alerting.Rules, rule{
			Alert: a.Name, Expr: a.Expr, For: fmt.Sprintf("%dm", int(a.For.Minutes())), Labels: map[string]string{"severity": string(a.Severity)},
			Annotations: map[string]string{"summary": a.Summary, "description": a.Description, "runbook_url": a.RunbookURL()},
		})
	}
	text, err := yaml.Marshal(file{Groups: []group{recording, alerting}})
	if err != nil {
		return nil, fmt.Errorf("write the rules as YAML: %w", err)
	}
	return text, nil
}
