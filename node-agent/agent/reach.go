// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
)

// Reach sends the API server a small request by a new connection, because a connection from before a cut looks alive
// for long. If the server answers, or its machine refuses the connection, as during a restart, the network is intact.
// A server that answers that it cannot serve counts as unreachable.
func Reach(config *rest.Config) (func(context.Context) error, error) {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("read how to reach the API server %s: %w", config.Host, err)
	}
	proxy := http.ProxyFromEnvironment
	if config.Proxy != nil {
		proxy = config.Proxy
	}
	transport, err := rest.HTTPWrappersForConfig(config, &http.Transport{TLSClientConfig: tls, Proxy: proxy, DisableKeepAlives: true})
	if err != nil {
		return nil, err
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	address := server.JoinPath("version").String()
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		response, err := transport.RoundTrip(request)
		if errors.Is(err, unix.ECONNREFUSED) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reach the API server at %s: %w", server.Host, err)
		}
		defer response.Body.Close()
		if response.StatusCode >= http.StatusInternalServerError {
			return fmt.Errorf("the API server at %s answers %s", server.Host, response.Status)
		}
		return nil
	}, nil
}

// APIServer returns the addresses of the API server. For a name, these are the last known ones. It is for one
// goroutine.
func APIServer(config *rest.Config) func() []net.IP {
	const timeout = 2 * time.Second
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return func() []net.IP { return nil }
	}
	if address := net.ParseIP(server.Hostname()); address != nil {
		return func() []net.IP { return []net.IP{address} }
	}
	var last []net.IP
	return func() []net.IP {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if found, err := net.DefaultResolver.LookupIP(ctx, "ip", server.Hostname()); err == nil {
			last = found
		}
		return last
	}
}
