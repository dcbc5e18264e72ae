// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// What the agents and the consumers of a running cluster really may do.

// fields are the values of lines "NAME: VALUE ..." whose names match, each once.
func fields(lines, name string) []string {
	var values []string
	for _, match := range regexp.MustCompile(`(?m)^(?:`+name+`)\S*[:\s]+(\S+)`).FindAllStringSubmatch(lines, -1) {
		values = append(values, match[1])
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// capabilities is the mask of those that docs/security.md gives to a container.
func (c *Case) capabilities(container string) string {
	document, header := c.read("docs/security.md"), c.read("/usr/include/linux/capability.h")
	var mask uint64
	for _, match := range regexp.MustCompile("(?m)^\\| "+container+" \\| `(CAP_[A-Z_]*)` \\|").FindAllStringSubmatch(document, -1) {
		number := fields(header, `#define\s+`+match[1]+`\b`)
		require.Len(c, number, 1, match[1])
		mask |= 1 << c.number(number[0])
	}
	require.NotZero(c, mask)
	return fmt.Sprintf("%016x", mask)
}

func TestAgentsHaveTheDocumentedCapabilities(t *testing.T) {
	c := together(t)
	want := c.capabilities("agent")
	said := c.onAll(`grep -hE "^(CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp):" /proc/$(pidof node-agent)/status`)
	require.Equal(t, []string{want}, fields(said, "Cap"), said)
	require.Equal(t, []string{"1"}, fields(said, "NoNewPrivs"), said)
	require.Equal(t, []string{"2"}, fields(said, "Seccomp:"), said)
}

// Of the node's /sys, with all that is mounted below it, an agent can write devices and drivers, and its pins; of /proc the network's
// sysctls.
func TestAgentsWriteLittleOfSys(t *testing.T) {
	c := together(t)
	said := c.onAll(`awk "\$2 ~ /^\/host/ { print \$4, \$2 }" /proc/$(pidof node-agent)/mounts`)
	require.Equal(t, []string{"/host/proc/sys/net", "/host/sys/bus", "/host/sys/devices"}, fields(said, "rw"), said)
	require.Len(t, regexp.MustCompile(`(?m)^ro\S* /host/sys$`).FindAllString(said, -1), 2, said)
}

func TestConsumersHaveNoCapability(t *testing.T) {
	c := together(t)
	require.Equal(t, "restricted", get[corev1.Namespace](c, "", demo).Labels["pod-security.kubernetes.io/enforce"])
	said := c.onAll(`pids=$(pidof tcpdump) && for pid in $pids; do grep -hE "^(Uid|CapEff|CapBnd|NoNewPrivs):" /proc/$pid/status || exit; done`)
	require.Equal(t, []string{strings.Repeat("0", 16)}, fields(said, "Cap"), said)
	require.Equal(t, []string{"65534"}, fields(said, "Uid"), said)
}
