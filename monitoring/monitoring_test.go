// SPDX-License-Identifier: Apache-2.0

// Package monitoring_test checks that rules, dashboards, metrics and runbooks are of one piece.
package monitoring_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/monitoring/catalogue"
	"github.com/ringcap/ringcap/monitoring/dashboards"
	"github.com/ringcap/ringcap/monitoring/rules"
	agent "github.com/ringcap/ringcap/node-agent/metrics"
	operator "github.com/ringcap/ringcap/operator/metrics"
)

// exposed has all names of agent and operator, and recorded those of the rules.
func exposed() map[string]bool {
	names := map[string]bool{}
	for _, m := range append(agent.Catalogue(), operator.Catalogue()...) {
		names[m.Name] = true
	}
	return names
}

func TestRulesUseWhatThereIs(t *testing.T) {
	names := exposed()
	check := func(rule, expr string) {
		require.NotEmpty(t, catalogue.NamesIn(expr), rule)
		for _, name := range catalogue.NamesIn(expr) {
			assert.True(t, names[catalogue.Base(name)], "%s uses %s, which nobody exposes", rule, name)
		}
	}
	for _, r := range rules.Recordings {
		check(r.Name, r.Expr)
		names[r.Name] = true
	}
	for _, a := range rules.Alerts {
		check(a.Name, a.Expr)
	}
}

func TestDashboardsUseWhatThereIs(t *testing.T) {
	names, used := exposed(), map[string]bool{}
	for _, d := range dashboards.All {
		for _, row := range d.Rows {
			for _, panel := range row.Panels {
				for _, query := range panel.Queries {
					for _, name := range catalogue.NamesIn(query.Expr) {
						used[catalogue.Base(name)] = true
						assert.True(t, names[catalogue.Base(name)], "%s, panel %s: nobody exposes %s", d.Title, panel.Title, name)
					}
					assert.NotContains(t, query.Runnable(d), "$", "%s, panel %s: a variable that the dashboard does not have", d.Title, panel.Title)
				}
			}
		}
		for _, v := range d.Variables {
			assert.True(t, names[v.Metric], v.Metric)
		}
	}
	// Everything is on a dashboard, but for these.
	for _, name := range []string{
		"ringcap_plugin_filtered_packets_total", "ringcap_rule_bytes_total", "ringcap_rules_other_bytes_total",
		"ringcap_payload_patterns_other_packets_total", "ringcap_ring_reflect_failed_packets_total", "ringcap_operator_build_info",
	} {
		used[name] = true
	}
	for name := range names {
		assert.True(t, used[name], "%s is on no dashboard", name)
	}
}

// TestDashboardsAreWhole: identifiers are not given twice, and no panel lies over another or beyond the edge.
func TestDashboardsAreWhole(t *testing.T) {
	for _, d := range dashboards.All {
		text, err := d.JSON()
		require.NoError(t, err)
		var page struct {
			UID    string
			Panels []struct {
				ID      int
				Title   string
				GridPos struct{ X, Y, W, H int }
			}
		}
		require.NoError(t, json.Unmarshal(text, &page))
		assert.Equal(t, "ringcap-"+d.Name, page.UID)
		ids, taken := map[int]bool{}, map[[2]int]string{}
		for _, p := range page.Panels {
			assert.False(t, ids[p.ID], "%s: id %d", d.Title, p.ID)
			ids[p.ID] = true
			assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
			for x := range p.GridPos.W {
				for y := range p.GridPos.H {
					at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
					assert.Empty(t, taken[at], "%s: %s lies over it", d.Title, p.Title)
					taken[at] = p.Title
				}
			}
		}
	}
}

// TestEveryAlertHasARunbook: with everything that somebody who is woken up needs.
func TestEveryAlertHasARunbook(t *testing.T) {
	page, err := os.ReadFile("../docs/monitoring.md")
	require.NoError(t, err)
	known := map[string]bool{}
	for _, a := range rules.Alerts {
		known[a.Name+".md"] = true
		assert.NotZero(t, a.For, a.Name)
		assert.NotEmpty(t, a.Summary, a.Name)
		assert.Contains(t, string(page), fmt.Sprintf("| [%s](runbooks/%s.md) | %s | %d min |", a.Name, a.Name, a.Severity, int(a.For.Minutes())))
		text, err := os.ReadFile("../docs/runbooks/" + a.Name + ".md")
		require.NoError(t, err)
		for _, part := range []string{"# " + a.Name + "\n", "\n## What it means\n", "\n## Who is affected\n", "\n## Look\n", "\n## Fix\n", "\n## Verify\n"} {
			assert.Contains(t, string(text), part, a.Name)
		}
		assert.True(t, strings.Contains(string(text), "kubectl ") || strings.Contains(string(text), "ringcap "), "%s: a command to look with", a.Name)
	}
	runbooks, err := os.ReadDir("../docs/runbooks")
	require.NoError(t, err)
	for _, file := range runbooks {
		assert.True(t, known[file.Name()], "no alert has the runbook %s", file.Name())
	}
}
