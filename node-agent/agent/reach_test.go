// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

func TestReach(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	deaf := listener.Addr().String() // Its backlog takes connections, and nobody answers.
	defer listener.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed.Close()
	answering := func(status int) string {
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(front.Close)
		return front.URL
	}
	for name, test := range map[string]struct{ server, message string }{
		"answers":            {answering(http.StatusOK), ""},
		"forbids":            {answering(http.StatusForbidden), ""},
		"is of no use":       {answering(http.StatusServiceUnavailable), "answers 503"},
		"is started again":   {closed.Addr().String(), ""},
		"is not to be heard": {deaf, "reach the API server at " + deaf},
	} {
		t.Run(name, func(t *testing.T) {
			reach, err := Reach(&rest.Config{Host: test.server})
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
			defer cancel()
			err = reach(ctx)
			if test.message == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, test.message)
			}
		})
	}
}

func TestAPIServersAddresses(t *testing.T) {
	for server, want := range map[string]string{
		"https://10.96.0.1:443": "10.96.0.1", "[2001:db8::1]:6443": "2001:db8::1", "https://localhost:6443": "127.0.0.1",
	} {
		found := APIServer(&rest.Config{Host: server})()
		require.NotEmpty(t, found, server)
		var texts []string
		for _, address := range found {
			texts = append(texts, address.String())
		}
		assert.Contains(t, texts, want)
	}
	assert.Empty(t, APIServer(&rest.Config{Host: "https://nowhere.invalid"})())
}
