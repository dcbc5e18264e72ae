// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"fmt"
	"strings"
)

// Table is the metrics as a table in Markdown.
func Table(metrics []Metric) string {
	var text strings.Builder
	text.WriteString("| name | type | labels | what |\n|---|---|---|---|\n")
	for _, m := range metrics {
		fmt.Fprintf(&text, "| `%s` | %s | %s | %s |\n", m.Name, m.Kind, strings.Join(m.Labels, ", "), m.Help)
	}
	return text.String()
}
