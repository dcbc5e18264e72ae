// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ringcap/ringcap/operator/api/counters"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// longestAnswer, bytes, is more than an agent with very many queues and rings sends; longer answers are cut.
const longestAnswer = 8 << 20

// AskThrough returns an Asker that uses the API server's proxy of pods, with the user's own rights.
func AskThrough(config *rest.Config) (Asker, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // Ask bounds it
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
