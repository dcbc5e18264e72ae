// SPDX-License-Identifier: Apache-2.0

package dashboards

// All are the dashboards.
var All = []Dashboard{fleet, node, ring, cluster}

// Variables of several dashboards; a selector of a variable is label=~"$name".
var (
	nodes    = Variable{Name: "node", Label: "Node", Metric: "ringcap_build_info", Source: "node", Multi: true}
	rings    = Variable{Name: "ring", Label: "CaptureRing", Metric: "ringcap_ring_ready", Source: "ring", Multi: true}
	clusters = Variable{Name: "capture_cluster", Label: "Cluster", Metric: "ringcap_cluster_ready", Source: "capture_cluster", Multi: true}
)

func graph(title string, unit Unit, width int, description string, queries ...Query) Panel {
	return Panel{Title: title, Description: description, Kind: Graph, Unit: unit, Width: width, Queries: queries}
}

func stacked(p Panel) Panel {
	p.Stacked = true
	return p
}

func table(title string, unit Unit, width int, description, expr string) Panel {
	return Panel{Title: title, Description: description, Kind: Table, Unit: unit, Width: width, Queries: []Query{{Expr: expr}}}
}

// number is red from alarm on.
func number(title string, unit Unit, alarm float64, description, expr string) Panel {
	return Panel{Title: title, Description: description, Kind: Stat, Unit: unit, Width: 4, Queries: []Query{{Expr: expr}}, Alarm: &alarm}
}

// figure is never red.
func figure(title string, unit Unit, description, expr string) Panel {
	p := number(title, unit, 0, description, expr)
	p.Alarm = nil
	return p
}
