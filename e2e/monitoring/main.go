// SPDX-License-Identifier: Apache-2.0

// monitoring asks a Prometheus that scrapes real agents and a real operator.
//
//	monitoring check URL              every query of a dashboard and every recording rule has data, every alert's series exist
//	monitoring record URL FROM STEP   the series that the rules use, since FROM (seconds since 1970) in STEPs of seconds, as
//	                                  input_series of promtool's
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ringcap/ringcap/monitoring/catalogue"
	"github.com/ringcap/ringcap/monitoring/dashboards"
	"github.com/ringcap/ringcap/monitoring/rules"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "monitoring: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == "check":
		return check(prometheus(args[1]), out)
	case len(args) == 4 && args[0] == "record":
		from, err := strconv.ParseInt(args[2], 10, 64)
		step, stepErr := strconv.Atoi(args[3])
		if err := errors.Join(err, stepErr); err != nil {
			return err
		}
		return record(prometheus(args[1]), window{time.Unix(from, 0), time.Now(), time.Duration(step) * time.Second}, out)
	}
	return errors.New("usage: monitoring check URL | record URL FROM STEP")
}

// check asks everything, and fails with all that had no answer.
func check(p prometheus, out io.Writer) error {
	var errs []error
	asked := 0
	ask := func(who, expr string) {
		asked++
		switch result, err := p.query(expr); {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", who, err))
		case len(result) == 0:
			errs = append(errs, fmt.Errorf("%s: no data: %s", who, expr))
		}
	}
	for _, d := range dashboards.All {
		for _, row := range d.Rows {
			for _, panel := range row.Panels {
				for _, query := range panel.Queries {
					// A query for trouble has no result while there is none, but its series must exist.
					expr := strings.TrimSuffix(strings.TrimSuffix(query.Runnable(d), " == 0"), " > 0")
					ask("dashboard "+d.Title+", panel "+panel.Title, expr)
				}
			}
		}
	}
	for _, r := range rules.Recordings {
		ask("recording rule "+r.Name, r.Name)
		ask("recording rule "+r.Name, r.Expr)
	}
	for _, a := range rules.Alerts {
		asked++
		if _, err := p.query(a.Expr); err != nil {
			errs = append(errs, fmt.Errorf("alert %s: %w", a.Name, err))
		}
		for _, name := range catalogue.NamesIn(a.Expr) {
			ask("alert "+a.Name, name)
		}
	}
	fmt.Fprintf(out, "%d queries, %d without an answer\n", asked, len(errs))
	return errors.Join(errs...)
}
