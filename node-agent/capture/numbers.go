// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseNumbers reads a list such as 0-3,8, of CPUs or RX queues. This is the format of cpuset(7), of the kernel's
// files on CPUs, and of the API's fields. Numbers are from 0 to greatest. The result has them in the order of the
// list, and as often as the list.
func ParseNumbers(list string, greatest int) ([]int, error) {
	var numbers []int
	for _, part := range strings.Split(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		low, lowErr := strconv.Atoi(first)
		high, highErr := strconv.Atoi(last)
		if lowErr != nil || highErr != nil || low < 0 || high < low || high > greatest {
			return nil, fmt.Errorf("%q is not a number from 0 to %d or a range of them, such as 0-3,8", part, greatest)
		}
		for n := low; n <= high; n++ {
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}
