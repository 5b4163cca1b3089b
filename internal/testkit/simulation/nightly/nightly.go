// Package nightly runs the real pipeline under virtual time: kafka-go, the embedded broker
// in memory, gateways, two groups of monitors and a route in one [testing/synctest] bubble,
// over connections in memory whose faults are drawn from one seed. Package simulation is the
// fast, pure counterpart for every push; this one also runs the code between the machines
// and the wire.
//
// Monitors are stopped, killed and suspended. Requests are lost, late, slow or doubled, or
// their answers are lost. Requests of transactions meet more faults than others. Monitors are
// suspended in the middle of transactions, for longer than their session and for less time
// than the broker leaves a transaction open. The monitors of one group run a route to a
// webhook. Its receiver is away, slow, or takes an event without an answer.
//
// The simulation does not kill the broker and the gateways, add partitions or change models:
// package simulation and the end-to-end tests do that. A suspended monitor keeps its clock;
// SIGSTOP stops the clock too. Requests to join a group meet no faults, and a monitor is not
// killed while it joins: the tests of internal/bus do that.
//
// Mutants remove the two protections, the fence of transactions and the generation of
// positions, one by one on the wire (mutants_test.go). Seeds must find that.
//
// All code is in tests. They need a changed Go runtime, which scripts/synctest-overlay writes:
// with the released one a bubble does not run the same way twice, and its time may stop.
// Without it TestSeeds and TestSeed are skipped. `make simulate-real SEEDS=100` runs them.
package nightly
