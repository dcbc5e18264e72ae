// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// prometheus is a server's address.
type prometheus string

// series is a result of a query. Of an instant query it has one value.
type series struct {
	Metric map[string]string
	Value  sample
	Values []sample
}

// sample is [seconds, "value"].
type sample [2]any

func (s sample) text() string { return fmt.Sprint(s[1]) }

func (p prometheus) query(expr string) ([]series, error) {
	return p.get("query", url.Values{"query": {expr}})
}

// window is the time from its beginning until its end, in steps.
type window struct {
	from, to time.Time
	step     time.Duration
}

func (p prometheus) queryRange(expr string, w window) ([]series, error) {
	at := func(t time.Time) string { return fmt.Sprint(t.Unix()) }
	return p.get("query_range", url.Values{"query": {expr}, "start": {at(w.from)}, "end": {at(w.to)}, "step": {fmt.Sprint(w.step.Seconds())}})
}

func (p prometheus) get(what string, values url.Values) ([]series, error) {
	response, err := http.Get(string(p) + "/api/v1/" + what + "?" + values.Encode())
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer struct {
		Error string
		Data  struct {
			ResultType string
			Result     json.RawMessage
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("query %s: %w", values.Get("query"), err)
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("query %s: %s", values.Get("query"), answer.Error)
	}
	var result []series
	if err := json.Unmarshal(answer.Data.Result, &result); err != nil {
		return nil, fmt.Errorf("query %s: %s is not a list of series: %w", values.Get("query"), answer.Data.ResultType, err)
	}
	return result, nil
}
