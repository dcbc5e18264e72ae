// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/ringcap/ringcap/e2e/demo/counters"
)

// nodeCaptures prints all NodeCaptures as kubectl does, with the present counters of the agents. Agents that do not answer have a
// minute.
func nodeCaptures(args []string) error {
	if len(args) > 0 {
		return errors.New("takes no arguments; the cluster is KUBECONFIG's")
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	list, err := counters.Read(ctx, config)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(list)
}
