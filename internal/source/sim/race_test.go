//go:build race

package sim

// raceEnabled reports whether the race detector is at work.
const raceEnabled = true
