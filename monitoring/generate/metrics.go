// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"

	"github.com/ringcap/ringcap/monitoring/catalogue"
	agent "github.com/ringcap/ringcap/node-agent/metrics"
	operator "github.com/ringcap/ringcap/operator/metrics"
)

//go:embed metrics.md.txt
var metricsText string

func metricsPage() []byte {
	return fmt.Appendf(nil, metricsText, agent.MaxNames, catalogue.Table(agent.Catalogue()), catalogue.Table(operator.Catalogue()))
}
