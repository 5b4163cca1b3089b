//go:build !linux

package study

import "time"

var start = time.Now()

// threadSeconds returns the time that has passed: a busy machine lengthens it.
func threadSeconds() float64 { return time.Since(start).Seconds() }
