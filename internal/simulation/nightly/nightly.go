// Package nightly runs the real pipeline under virtual time: kafka-go, the embedded broker
// in memory, gateways, two groups of monitors and a route in one [testing/synctest] bubble,
// over connections in memory whose faults are drawn from one seed. Package simulation is the
// fast, pure counterpart for every push; this one also runs the code between the machines
// and the wire.
//
// Monitors are stopped, killed and suspended; requests are lost, late, slow, doubled, or
// their answers are lost. Requests of transactions meet more trouble than others, and
// monitors are suspended in the middle of transactions, for longer than their session and
// for less time than the broker leaves a transaction open. The monitors of one group run a
// route to a webhook, whose receiver is away, slow, or takes an event without saying so.
//
// The broker and the gateways are not killed, partitions are not raised and models not
// swapped: package simulation and the end-to-end tests do that. A monitor that is suspended
// keeps its clock; SIGSTOP stops that too. A monitor is not killed while it joins its group:
// after that the embedded broker may never complete the group again.
//
// What the fence of transactions and the generation of positions protect from is taken away
// on the wire, one by one (mutants_test.go): seeds must find it.
//
// Everything is in tests. Without a changed Go runtime, which scripts/synctest-overlay
// writes, a bubble does not run the same way twice and its time may stand still: then
// TestSeeds and TestSeed are skipped. `make simulate-real SEEDS=100` runs them with it.
package nightly
