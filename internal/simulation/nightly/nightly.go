// Package nightly runs the real pipeline under virtual time: kafka-go, the embedded broker
// in memory, gateways and two groups of monitors in one [testing/synctest] bubble, over
// connections in memory whose faults are drawn from one seed. Package simulation is the
// fast, pure counterpart for every push; this one also runs the code between the machines
// and the wire.
//
// Everything is in tests. Without a changed Go runtime, which scripts/synctest-overlay
// writes, a bubble does not run the same way twice and its time may stand still: then
// TestSeeds and TestSeed are skipped. `make simulate-real SEEDS=100` runs them with it.
package nightly
