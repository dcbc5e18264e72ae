// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestSelector(t *testing.T) {
	assert.Equal(t, `ringcap_ring_ready{node="a",reason="it's \"so\""}`,
		selector(map[string]string{"__name__": "ringcap_ring_ready", "reason": `it's "so"`, "node": "a", "instance": "10.0.0.1:9466", "job": "x"}))
}

func TestSteps(t *testing.T) {
	at := func(second int64) sample { return sample{float64(second), "7"} }
	w := window{time.Unix(100, 0), time.Unix(112, 0), 2 * time.Second}
	assert.Equal(t, "_x2 7+0x1 _ 7 _", steps([]sample{at(104), at(106), at(110)}, w))
	assert.Equal(t, "1 2 3", steps([]sample{{100.0, "1"}, {102.0, "2"}, {104.0, "3"}}, window{time.Unix(100, 0), time.Unix(105, 0), 2 * time.Second}))
}
