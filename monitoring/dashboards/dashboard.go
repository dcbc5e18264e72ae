// SPDX-License-Identifier: Apache-2.0

// Package dashboards is the source of ringcap's Grafana dashboards: monitoring/generate writes them as JSON into the chart.
// Their queries need no recording rule.
package dashboards

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Dashboard is one page.
type Dashboard struct {
	// Name is that of its file, and with ringcap- ahead its uid.
	Name, Title, Description string
	Variables                []Variable
	Rows                     []Row
}

// Variable is a label with values that a reader can select.
type Variable struct {
	Name, Label string
	// Values is a metric that has the label.
	Metric, Source string
	// Multi lets several be picked, or all, which is the default then.
	Multi bool
}

// Row is a heading with panels.
type Row struct {
	Title  string
	Panels []Panel
}

// Kind is a kind of panel, as Grafana calls it.
type Kind string

// The kinds in use.
const (
	Graph Kind = "timeseries"
	Stat  Kind = "stat"
	Table Kind = "table"
)

// Unit is a unit, as Grafana calls it.
type Unit string

// The units in use.
const (
	PacketsPerSecond Unit = "pps"
	BytesPerSecond   Unit = "Bps"
	Bytes            Unit = "bytes"
	Ratio            Unit = "percentunit"
	Seconds          Unit = "s"
	Count            Unit = "short"
)

// Panel is a graph, a number or a table.
type Panel struct {
	Title, Description string
	Kind               Kind
	Unit               Unit
	// Width of 24.
	Width   int
	Stacked bool
	Queries []Query
	// Alarm is the value from which on a number is red; nil for never.
	Alarm *float64
}

// Query is in PromQL, with Grafana's variables. Legend is a template over labels.
type Query struct{ Expr, Legend string }

// object is a JSON object.
type object = map[string]any

// UID is known to links.
func (d Dashboard) UID() string { return "ringcap-" + d.Name }

// JSON is the dashboard as Grafana imports it.
func (d Dashboard) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(object{
		"uid": d.UID(), "title": "ringcap / " + d.Title, "description": d.Description, "tags": []string{"ringcap"},
		"editable": false, "schemaVersion": 38, "timezone": "browser", "refresh": "30s", "graphTooltip": 1,
		"time":       object{"from": "now-1h", "to": "now"},
		"templating": object{"list": d.variables()},
		"links": []object{{
			"type": "dashboards", "title": "ringcap", "tags": []string{"ringcap"}, "asDropdown": true, "keepTime": true, "includeVars": true,
		}},
		"panels": d.panels(),
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write dashboard %s: %w", d.Name, err)
	}
	return append(text, '\n'), nil
}

var datasource = object{"type": "prometheus", "uid": "${datasource}"}

func (d Dashboard) variables() []object {
	list := []object{{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}}
	for _, v := range d.Variables {
		query := fmt.Sprintf("label_values(%s, %s)", v.Metric, v.Source)
		variable := object{
			"name": v.Name, "label": v.Label, "type": "query", "datasource": datasource, "definition": query,
			"query": object{"query": query, "refId": "values"}, "refresh": 2, "sort": 1, "multi": v.Multi, "includeAll": v.Multi,
		}
		if v.Multi {
			variable["allValue"] = ".*"
			variable["current"] = object{"text": "All", "value": "$__all"}
		}
		list = append(list, variable)
	}
	return list
}

// panels lays the panels out from left to right.
func (d Dashboard) panels() []object {
	const columns, heading = 24, 1
	var list []object
	y := 0
	for _, row := range d.Rows {
		list = append(list, object{
			"id": len(list) + 1, "type": "row", "title": row.Title, "collapsed": false, "panels": []object{},
			"gridPos": object{"x": 0, "y": y, "w": columns, "h": heading},
		})
		y += heading
		x, height := 0, 0
		for _, panel := range row.Panels {
			if x+panel.Width > columns {
				x, y, height = 0, y+height, 0
			}
			built := panel.build()
			built["id"] = len(list) + 1
			built["gridPos"] = object{"x": x, "y": y, "w": panel.Width, "h": panel.height()}
			list = append(list, built)
			x, height = x+panel.Width, max(height, panel.height())
		}
		y += height
	}
	return list
}

func (p Panel) height() int {
	if p.Kind == Stat {
		return 4
	}
	return 8
}

func (p Panel) build() object {
	built := object{
		"type": p.Kind, "title": p.Title, "description": p.Description, "datasource": datasource, "targets": p.targets(),
		"fieldConfig": object{"defaults": p.field(), "overrides": []object{}},
	}
	switch p.Kind {
	case Graph:
		built["options"] = object{
			"legend": object{"displayMode": "table", "placement": "bottom", "calcs": []string{"lastNotNull", "max"}}, "tooltip": object{"mode": "multi", "sort": "desc"},
		}
	case Stat:
		built["options"] = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "colorMode": "background", "graphMode": "area"}
	case Table:
		built["transformations"] = []object{{"id": "organize", "options": object{"excludeByName": object{"Time": true}}}}
	}
	return built
}

func (p Panel) field() object {
	steps := []object{{"color": "green", "value": nil}}
	if p.Alarm != nil {
		steps = append(steps, object{"color": "red", "value": *p.Alarm})
	}
	field := object{"unit": p.Unit, "min": 0, "thresholds": object{"mode": "absolute", "steps": steps}}
	if p.Kind == Graph {
		custom := object{"fillOpacity": 10, "showPoints": "never"}
		if p.Stacked {
			custom["fillOpacity"], custom["stacking"] = 40, object{"mode": "normal"}
		}
		field["custom"] = custom
	}
	return field
}

func (p Panel) targets() []object {
	var targets []object
	for i, query := range p.Queries {
		target := object{"refId": string(rune('A' + i)), "datasource": datasource, "expr": query.Expr, "legendFormat": query.Legend}
		if p.Kind != Graph {
			target["instant"] = true
		}
		if p.Kind == Table {
			target["format"] = "table"
		}
		targets = append(targets, target)
	}
	return targets
}

// Runnable is the query as Prometheus takes it, with all values of all variables.
func (q Query) Runnable(d Dashboard) string {
	expr := strings.ReplaceAll(q.Expr, "$__rate_interval", "1m")
	for _, v := range d.Variables {
		expr = strings.ReplaceAll(expr, "$"+v.Name, ".*")
	}
	return expr
}
