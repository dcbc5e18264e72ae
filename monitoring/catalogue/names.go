// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"regexp"
	"slices"
	"strings"
)

// ours is the name of a series of ringcap's, recorded ones included.
var ours = regexp.MustCompile(`\bringcap(_[a-z_]+|:[a-z_]+:[a-z0-9_]+)\b`)

// NamesIn are the names of ringcap's series in an expression, sorted, each once.
func NamesIn(expr string) []string {
	names := ours.FindAllString(expr, -1)
	slices.Sort(names)
	return slices.Compact(names)
}

// Base is a metric's name without the ending that a histogram's series have.
func Base(name string) string {
	for _, ending := range []string{"_bucket", "_sum", "_count"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}
