//go:build !linux

package imbalance

import "time"

var start = time.Now()

// threadSeconds returns the time that has passed: a busy machine lengthens it.
func threadSeconds() float64 { return time.Since(start).Seconds() }
