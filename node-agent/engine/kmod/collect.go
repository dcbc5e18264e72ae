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
