// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"strings"
	"time"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// inlineHealth returns the health of a queue in line, and its problem. Packets that its consumer did not get are not lost if they
// left.
func inlineHealth(in *v1.InlineQueueStatus) (Health, string) {
	health, problems := Healthy, []string{}
	add := func(worse Health, text string) {
		health, problems = Worst(health, worse), append(problems, text)
	}
	switch {
	case in.Event != "" && in.Blocking:
		add(Failed, inlineNow("packets are blocked", in))
	case in.Event != "":
		add(Degraded, inlineNow("packets bypass the consumer", in))
	}
	for _, list := range []struct {
		name   string
		counts []v1.DropCount
	}{{"bypassed", in.Bypassed}, {"stopped", in.Stopped}, {"lost", in.Lost}} {
		if _, text := lost(list.counts); text != "" {
			add(Degraded, list.name+strings.TrimPrefix(text, "lost"))
		}
	}
	if in.NotInjected > 0 {
		add(Degraded, "not injected "+Number(in.NotInjected))
	}
	if in.Unanswered > 0 {
		add(Degraded, "unanswered "+Number(in.Unanswered))
	}
	return health, strings.Join(problems, "; ")
}

func inlineNow(what string, in *v1.InlineQueueStatus) string {
	if in.Since == nil {
		return fmt.Sprintf("%s (%s)", what, in.Event)
	}
	return fmt.Sprintf("%s (%s) since %s: %s", what, in.Event, in.Since.UTC().Format(time.RFC3339), Number(in.SincePackets))
}

// inlineRing formats the account of a ring in line on a node.
func inlineRing(in *v1.InlineRingStatus, passed int64) string {
	account := fmt.Sprintf("in line %s: bridged %s", strings.Join(in.Pairs, ", "), Number(in.Bridged))
	if _, text := lost(in.Lost); text != "" {
		account += " + " + text
	}
	return account + " + passed " + Number(passed)
}

// verdicts formats what a consumer decided.
func verdicts(in *v1.InlineQueueStatus) string {
	text := fmt.Sprintf("passed %s, replaced %s, blocked %s, held %s", Number(in.Passed), Number(in.Replaced), Number(in.Blocked), Number(in.Held))
	if in.Injected > 0 {
		text += ", injected " + Number(in.Injected)
	}
	if in.ShuntPassed+in.ShuntBlocked > 0 {
		text += fmt.Sprintf(", shunted %s passed and %s blocked", Number(in.ShuntPassed), Number(in.ShuntBlocked))
	}
	return text
}
