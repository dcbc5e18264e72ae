// SPDX-License-Identifier: Apache-2.0

package kmod

import "github.com/mdlayher/genetlink"

// collect dumps a kind of object.
func collect[T any](c *client, command uint8, attributes []byte, decode func(genetlink.Message) (T, error)) ([]T, error) {
	messages, err := c.dump(command, attributes)
	if err != nil {
		return nil, err
	}
	var objects []T
	for _, message := range messages {
		object, err := decode(message)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// objects dumps all rings and clusters of the namespace, including those of other programs.
func (c *client) objects() (have objects, err error) {
	if have.rings, err = collect(c, cmdRingGet, nil, decodeRing); err == nil {
		have.clusters, err = collect(c, cmdClusterGet, nil, decodeCluster)
	}
	return have, err
}
