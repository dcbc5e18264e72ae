// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ringcap/ringcap/operator/api/counters"
)

// Probe returns why something is not well, or nil. Any goroutine may call it.
type Probe func() error

// Counted returns the last report of counters, nil before the first. Any goroutine may call it.
type Counted func() *counters.Report

// Serve serves /metrics, /healthz, /readyz and, unless counted is nil, /counters at an address until ctx ends. The
// error is that of listening.
func Serve(ctx context.Context, address string, collector prometheus.Collector, healthy, ready Probe, counted Counted) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	mux.Handle("GET /healthz", probeHandler(healthy))
	mux.Handle("GET /readyz", probeHandler(ready))
	if counted != nil {
		mux.Handle("GET "+counters.Path, countersHandler(counted))
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("Metrics are not served any more", "error", err)
		}
	}()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return nil
}

func probeHandler(probe Probe) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := probe(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
}

func countersHandler(counted Counted) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		report := counted()
		if report == nil {
			http.Error(w, "nothing has been counted yet", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(report); err != nil {
			slog.Debug("The counters could not be sent", "error", err)
		}
	})
}
