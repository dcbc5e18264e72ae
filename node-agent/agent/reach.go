// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net"
	"time"

	"k8s.io/client-go/rest"
)

// APIServer says at which addresses the API server is; of a name, those that were found last. It is for one goroutine.
func APIServer(config *rest.Config) func() []net.IP {
	const patience = 2 * time.Second
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return func() []net.IP { return nil }
	}
	if address := net.ParseIP(server.Hostname()); address != nil {
		return func() []net.IP { return []net.IP{address} }
	}
	var last []net.IP
	return func() []net.IP {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if found, err := net.DefaultResolver.LookupIP(ctx, "ip", server.Hostname()); err == nil {
			last = found
		}
		return last
	}
}
