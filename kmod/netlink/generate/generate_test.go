// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/operator/api/sizing"
)

const root = "../../.."

// claims are C expressions that hold where the header has what the specification has and this program does not write.
func (s *spec) claims(t *testing.T) []string {
	t.Helper()
	claims := []string{
		fmt.Sprintf("!__builtin_strcmp(RINGCAP_GENL_NAME, %q)", s.Name),
		fmt.Sprintf("!__builtin_strcmp(RINGCAP_GENL_MCGRP, %q)", s.Groups.List[0].Name),
		fmt.Sprintf("RINGCAP_GENL_VERSION == %d", s.Version),
	}
	require.Len(t, s.Groups.List, 1)
	for _, d := range s.Definitions {
		switch d.Type {
		case "const":
			claims = append(claims, fmt.Sprintf("%s == %d", cName(s.Name+"-", d.Name), d.Value))
		case "flags":
			for i, e := range d.Entries {
				claims = append(claims, fmt.Sprintf("%s == 1U << %d", cName(d.Prefix, e.Name), i))
			}
		case "struct":
			// C has an array.
			if d.Name != "port-range" {
				claims = append(claims, s.layout(t, d)...)
			}
		}
	}
	return claims
}

func (s *spec) layout(t *testing.T, d definition) (claims []string) {
	t.Helper()
	name, offset := "struct ringcap_"+strings.ReplaceAll(d.Name, "-", "_"), 0
	for _, m := range d.Members {
		field := strings.ReplaceAll(m.Name, "-", "_")
		size, err := s.size(m)
		require.NoError(t, err)
		claims = append(claims, fmt.Sprintf("offsetof(%s, %s) == %d", name, field, offset),
			fmt.Sprintf("sizeof(((%s *)0)->%s) == %d", name, field, size))
		offset += size
	}
	return append(claims, fmt.Sprintf("sizeof(%s) == %d", name, offset))
}

var failedClaim = regexp.MustCompile(`"claim (\d+)"`)

// wrongClaims are those of the specification that the header below a folder does not fulfil.
func wrongClaims(t *testing.T, root string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, specFile))
	require.NoError(t, err)
	s, err := parse(text)
	require.NoError(t, err)
	return compile(t, root, s.claims(t))
}

// compile returns the claims that the header below a folder does not fulfil, by the C compiler.
func compile(t *testing.T, root string, claims []string) (wrong []string) {
	t.Helper()
	program := "#include <stddef.h>\n#include <linux/ringcap.h>\n"
	for i, claim := range claims {
		program += fmt.Sprintf("_Static_assert(%s, \"claim %d\");\n", claim, i)
	}
	compiler := "cc"
	if cc := os.Getenv("CC"); cc != "" {
		compiler = cc
	}
	command := exec.Command(compiler, "-std=gnu11", "-fsyntax-only", "-I", filepath.Join(root, "kmod/include/uapi"), "-x", "c", "-")
	command.Stdin = strings.NewReader(program)
	out, err := command.CombinedOutput()
	for _, match := range failedClaim.FindAllStringSubmatch(string(out), -1) {
		i, _ := strconv.Atoi(match[1])
		wrong = append(wrong, claims[i])
	}
	require.Equal(t, err != nil, wrong != nil, "%s", out)
	return wrong
}

func TestHeaderHasWhatTheSpecificationHas(t *testing.T) {
	assert.Empty(t, wrongClaims(t, root))
}

// The operator and the agent size queues by numbers of their own.
func TestSizingHasTheHeadersNumbers(t *testing.T) {
	assert.Empty(t, compile(t, root, []string{
		fmt.Sprintf("sizeof(struct ringcap_slot) == %d", sizing.ModuleSlot),
		fmt.Sprintf("RINGCAP_LANE_SIZE_MIN == %d", sizing.MinArea),
		fmt.Sprintf("RINGCAP_LANE_SIZE_MAX == %d", sizing.MaxArea),
		fmt.Sprintf("RINGCAP_LANES_MAX >= %d", sizing.MaxLanes),
		fmt.Sprintf("RINGCAP_SNAPLEN_MAX == %d", sizing.MaxSnapLength),
	}))
}

// A change of one thing on one side is noticed, by the check or by the compiler.
func TestChangesAreNoticed(t *testing.T) {
	for _, change := range []struct{ file, pattern, replacement string }{
		{specFile, `value: 3\n`, "value: 33\n"},
		{specFile, `name: snaplen\n        type: u32`, "name: snaplen\n        type: u64"},
		{specFile, `        multi-attr: true\n`, ""},
		{specFile, `name: round-robin`, "name: round-about"},
		{specFile, `name: idle-s\n        type: u32`, "name: idle-s\n        type: u16"},
		{specFile, `value: 1024\n`, "value: 1025\n"},
		{specFile, `      -\n        name: metadata\n.*\n.*\n`, ""},
		{headerFile, `\tRINGCAP_A_QUEUES,.*\n`, ""},
		{headerFile, `(\tRINGCAP_CMD_RING_SET,.*\n)(\tRINGCAP_CMD_RING_DEL,.*\n)`, "$2$1"},
		{headerFile, `RINGCAP_EVENT_OVERFLOW,`, "RINGCAP_EVENT_FLOOD,"},
		{headerFile, `(\t__u16\tethertype;\n)(\t__u16\tvlan_id;\n)`, "$2$1"},
		{headerFile, `RINGCAP_MATCH_VLAN		\(1U << 3\)`, "RINGCAP_MATCH_VLAN (1U << 5)"},
		{headerFile, `GENL_MCGRP	"events"`, `GENL_MCGRP "event"`},
		{headerFile, `enum ringcap_sample \{\n`, "enum ringcap_other {\n};\n$0"},
		{agentFile, `attrSnapLen(\s*)= \d+`, "attrSnapLen = 7"},
		{agentFile, `cmdRingSet(\s*)= \d+`, "cmdRingSet = 7"},
	} {
		t.Run(change.pattern, func(t *testing.T) {
			folder := t.TempDir()
			for _, file := range []string{specFile, headerFile, agentFile} {
				text, err := os.ReadFile(filepath.Join(root, file))
				require.NoError(t, err)
				if file == change.file {
					changed := regexp.MustCompile(change.pattern).ReplaceAll(text, []byte(change.replacement))
					require.NotEqual(t, text, changed)
					text = changed
				}
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, file)), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(folder, file), text, 0o644))
			}
			if run(folder, true) == nil {
				assert.NotEmpty(t, wrongClaims(t, folder))
			}
		})
	}
}

// What this program does not know is refused, not left out.
func TestUnknownIsRefused(t *testing.T) {
	good, err := os.ReadFile(filepath.Join(root, specFile))
	require.NoError(t, err)
	header, err := os.ReadFile(filepath.Join(root, headerFile))
	require.NoError(t, err)
	for _, test := range []struct{ from, to, message string }{
		{"multi-attr: true", "mutli-attr: true", "mutli-attr"},
		{"type: u64\n        doc", "type: s64\n        doc", `type "s64"`},
		{"nested-attributes: tap", "nested-attributes: taps", `"taps"`},
		{"enum: balance", "enum: balances", `"balances"`},
		{"struct: exact\n        doc", "struct: exacts\n        doc", `"exacts"`},
		{"struct: port-range", "struct: ports", `"ports"`},
		{"len: 6", "sub-type: u8", "sub-type"},
		{"len: 6", "struct: exact\n        len: 6", "member smac"},
		{"attributes: [name, queue]", "attributes: [name, queues-of]", `"queues-of"`},
		{"name: sample\n    type: enum", "name: samples\n    type: enum", `"sample"`},
		{"attribute-sets:", "attribute-set:", "attribute-set"},
		{"inject, duplicated, spread, owned, memory,", "inject,", "cluster-get: do and dump"},
	} {
		t.Run(test.to, func(t *testing.T) {
			bad := strings.Replace(string(good), test.from, test.to, 1)
			require.NotEqual(t, string(good), bad)
			_, err := generate([]byte(bad), header)
			assert.ErrorContains(t, err, test.message)
		})
	}
	for _, text := range []string{"", "name: ringcap", "attribute-sets: []", "[", "name: [1]"} {
		_, err := generate([]byte(text), header)
		assert.Error(t, err, "%q", text)
	}
}
