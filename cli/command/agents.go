// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ringcap/ringcap/cli/fleet"
	"github.com/ringcap/ringcap/operator/api/counters"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// longestAnswer is that of an agent with very many queues and rings, bytes, and more: an agent is not trusted with more.
const longestAnswer = 8 << 20

// askThrough asks agents through the API server's proxy of pods, by the person's own right to that.
func askThrough(config *rest.Config) (fleet.Asker, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // fleet bounds it
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	return func(ctx context.Context, agent v1.NodeAgent) (report counters.Report, err error) {
		body, err := clients.CoreV1().RESTClient().Get().Namespace(agent.Namespace).Resource("pods").
			Name(net.JoinHostPort(agent.Pod, strconv.Itoa(int(agent.Port)))).SubResource("proxy").Suffix(counters.Path).
			MaxRetries(0).Stream(ctx)
		if err != nil {
			return report, err
		}
		defer body.Close()
		if err := json.NewDecoder(io.LimitReader(body, longestAnswer)).Decode(&report); err != nil {
			return report, fmt.Errorf("read its answer: %w", err)
		}
		return report, nil
	}, nil
}

// ask brings the counters of a snapshot up to date, and tells the person once of a right that is missing.
func (a *app) ask(ctx context.Context, c *connection, s *fleet.Snapshot, rings ...string) {
	s.Ask(ctx, c.agents, rings...)
	if s.Denied != "" && !a.toldDenied {
		a.toldDenied = true
		a.log("%s", s.Denied)
	}
}
