// SPDX-License-Identifier: Apache-2.0

package driver

import "time"

// The reason why a driver cannot be replaced may pass: a switch that takes long to bring up a link, or a route that
// would be lost. But each try takes the interface away twice. So there are few tries: 1, 5 and 25 minutes after the
// one before. A try that fails before it has changed anything does not count. The next one follows after a minute.
const (
	maxTries    = 4
	firstPause  = time.Minute
	pauseFactor = 5
)

// attempt is the history of replacing a driver.
type attempt struct {
	// Failure is why the last try failed.
	Failure string `json:"failure,omitempty"`
	// Tries that interrupted the interface since its driver is desired, without lasting success.
	Tries int `json:"tries,omitempty"`
	// NextTry is zero when there is none.
	NextTry time.Time `json:"nextTry,omitzero"`
}

// fail records a try that failed after the interface was taken away.
func (a *attempt) fail(why error, now time.Time) {
	a.Failure, a.NextTry = why.Error(), time.Time{}
	if a.Tries++; a.Tries >= maxTries {
		return
	}
	pause := firstPause
	for range a.Tries - 1 {
		pause *= pauseFactor
	}
	a.NextTry = now.Add(pause)
}

func (a *attempt) succeed() { a.Failure, a.NextTry = "", time.Time{} }

// postpone records a try that changed nothing.
func (a *attempt) postpone(why error, now time.Time) {
	a.Failure, a.NextTry = why.Error(), now.Add(firstPause)
}

func (a *attempt) due(now time.Time) bool { return !a.NextTry.IsZero() && !now.Before(a.NextTry) }
