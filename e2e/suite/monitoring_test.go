// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A real Prometheus scrapes the real agents and the real operator, with the chart's rules: all that dashboards, recording rules and
// alerts ask for is there, and what a fault does is seen.

const prometheus = "127.0.0.1:19090"

// fetchURL is what a server answers.
func (c *Case) fetchURL(url string) string {
	response, err := (&http.Client{Timeout: answerTime}).Get(url)
	require.NoError(c, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(c, err)
	require.Equal(c, http.StatusOK, response.StatusCode, "%s: %s", url, body)
	return string(body)
}

// ask is what Prometheus says, in data.
func ask[T any](c *Case, path string) (data T) {
	answer := struct{ Data *T }{&data}
	require.NoError(c, json.Unmarshal([]byte(c.fetchURL("http://"+prometheus+"/api/v1/"+path)), &answer))
	return data
}

// has waits until a query has so many series.
func (c *Case) has(series int, query string) {
	c.until(60, query, func() {
		require.Len(c, ask[struct{ Result []json.RawMessage }](c, "query?query="+url.QueryEscape(query)).Result, series)
	})
}

// metricsOf is where a node's agent serves its metrics.
func (c *Case) metricsOf(node string) string {
	return c.addressOf(node) + ":9466"
}

// startPrometheus: what the PodMonitors of the chart say, as a file, with three seconds between two scrapes. It returns the folder of
// its programs.
func (c *Case) startPrometheus() string {
	bin := c.run("e2e/prometheus/get")
	operator := c.podOn("", system, "app.kubernetes.io/component=operator").Status.PodIP
	config := c.write(c.file("config.yml"), fmt.Sprintf(`
global: {scrape_interval: 3s, scrape_timeout: 3s, evaluation_interval: 3s}
rule_files: [%s/charts/ringcap/files/rules.yaml]
scrape_configs:
  - job_name: operator
    static_configs: [{targets: ['%s:8080']}]
  - job_name: agent
    static_configs:
      - {targets: ['%s'], labels: {node: %s}}
      - {targets: ['%s'], labels: {node: %s}}
`, c.root, operator, c.metricsOf(ebpf), ebpf, c.metricsOf(kmod), kmod))
	log, err := os.Create(c.file("prometheus.log"))
	require.NoError(c, err)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := c.command(ctx, bin+"/prometheus", "--config.file="+config, "--storage.tsdb.path="+c.file("data"), "--web.listen-address="+prometheus)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(c, cmd.Start())
	c.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		_ = log.Close()
	})
	c.has(3, "up == 1")
	return bin
}

func TestMonitoring(t *testing.T) {
	c := start(t)
	// Rings that nobody reads, with rules and patterns by name and without.
	c.readyRing("suite-rules", `{interfaces: [{name: mirror0}], queues: 1, slots: 1024, filter: {rules: [
		{name: web, action: Pass, match: {protocol: TCP, destinationPort: 80, bidirectional: true}},
		{action: Drop, match: {protocol: UDP, destinationPort: 53}}]}}`)
	c.readyRing("suite-payload", `{interfaces: [{name: mirror0}], queues: 1, slots: 1024, engine: KernelModule,
		nodeSelector: {matchLabels: {kubernetes.io/hostname: node-kmod}}, filter: {payload: [{name: request, text: GET}, {text: POST}]}}`)
	// In line, between two cables whose other ends are down.
	c.Cleanup(func() { c.on(kmod, "ip link del line0; ip link del line1; true") })
	c.on(kmod, "set -e; for name in line0 line1; do ip link add $name type veth; ip link set $name up; done")
	c.readyRing("suite-line", `{queues: 1, slots: 1024, inline: {pairs: [{interfaces: [line0, line1]}]},
		nodeSelector: {matchLabels: {kubernetes.io/hostname: node-kmod}}}`)
	bin := c.startPrometheus()
	require.NoError(t, c.replay("sent").send())
	c.until(60, "every query of dashboards, rules and alerts is answered", func() {
		c.run("go", "run", "./e2e/monitoring", "check", "http://"+prometheus)
	})
	// Every packet that each ring saw is in one of the sums, in what Prometheus has as in the kernel.
	var parts []string
	for _, part := range []string{"passed", "filtered", "sampled_out", "reflected", "absorbed", "directed"} {
		parts = append(parts, "sum by (node, ring) (ringcap_ring_"+part+"_packets_total)")
	}
	sum := "(" + strings.Join(parts, " + ") + ")"
	c.has(0, "sum by (node, ring) (ringcap_ring_seen_packets_total) != "+sum)
	// A series that is missing is not unequal to any.
	c.has(5, `(sum by (node, ring) (ringcap_ring_seen_packets_total{ring=~"mirror|suite-rules|suite-payload"}) > 0) == `+sum)
	c.has(0, `ALERTS{alertstate="firing"}`)
	c.has(2, `ALERTS{alertname="RingcapQueueUnattended",capture_cluster="suite-rules"}`)
	c.has(0, `ALERTS{alertname=~"RingcapModuleFailed|RingcapEngineFallback"}`)
	c.has(0, `ALERTS{alertname=~"Ringcap.*Absent|RingcapNot.*|RingcapNodeNotReporting|RingcapResourceNotRegistered|RingcapReconcileErrors"}`)

	rules := ask[struct {
		Groups []struct {
			Rules []struct{ Name, Health string }
		}
	}](c, "rules")
	require.NotEmpty(t, rules.Groups)
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			require.Equal(t, "ok", rule.Health, rule.Name)
		}
	}
	targets := ask[struct{ ActiveTargets []struct{ ScrapeURL string } }](c, "targets").ActiveTargets
	require.Len(t, targets, 3)
	ours := regexp.MustCompile(`(?m)^(# (HELP|TYPE) )?ringcap_.*\n`)
	for _, target := range targets {
		metrics := strings.Join(ours.FindAllString(c.fetchURL(target.ScrapeURL), -1), "")
		require.NotEmpty(t, metrics, target.ScrapeURL)
		_, err := c.pipe(metrics, bin+"/promtool", "check", "metrics")
		require.NoError(t, err, target.ScrapeURL)
	}
}
