// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ringcap/ringcap/monitoring/catalogue"
	"github.com/ringcap/ringcap/monitoring/rules"
)

// used are the names of the series that agents and operator expose and rules need.
func used() []string {
	var names []string
	for _, r := range rules.Recordings {
		names = append(names, catalogue.NamesIn(r.Expr)...)
	}
	for _, a := range rules.Alerts {
		names = append(names, catalogue.NamesIn(a.Expr)...)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.Contains(name, ":") })
	slices.Sort(names)
	return slices.Compact(names)
}

// record writes the series as they were at each step.
func record(p prometheus, w window, out io.Writer) error {
	for _, name := range used() {
		all, err := p.queryRange(name, w)
		if err != nil {
			return err
		}
		for _, one := range all {
			fmt.Fprintf(out, "- series: '%s'\n  values: '%s'\n", selector(one.Metric), steps(one.Values, w))
		}
	}
	return nil
}

// selector leaves out what differs from machine to machine.
func selector(labels map[string]string) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if !slices.Contains([]string{"__name__", "instance", "job", "kernel", "version"}, name) {
			pairs = append(pairs, fmt.Sprintf("%s=%q", name, labels[name]))
		}
	}
	return labels["__name__"] + "{" + strings.Join(pairs, ",") + "}"
}

// steps are the values at the steps of the window, in promtool's notation; _ where there is none.
func steps(values []sample, w window) string {
	at := map[int64]string{}
	for _, v := range values {
		at[int64(v[0].(float64))] = v.text()
	}
	var all []string
	for t := w.from; !t.After(w.to); t = t.Add(w.step) {
		all = append(all, cmp.Or(at[t.Unix()], "_"))
	}
	return strings.Join(shorten(all), " ")
}

// shorten writes what repeats as promtool does: 7 7 7 is 7+0x2, and _ _ _ is _x3.
func shorten(values []string) []string {
	var words []string
	for len(values) > 0 {
		same := 1
		for same < len(values) && values[same] == values[0] {
			same++
		}
		switch {
		case same == 1:
			words = append(words, values[0])
		case values[0] == "_":
			words = append(words, fmt.Sprintf("_x%d", same))
		default:
			words = append(words, fmt.Sprintf("%s+0x%d", values[0], same-1))
		}
		values = values[same:]
	}
	return words
}
