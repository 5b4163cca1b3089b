package simulation

import "slices"

// mostLost is how much a log may lose, in virtual milliseconds before the broker stopped.
const mostLost = int64(20_000)

// stop takes the broker down for a while. It forgets nothing, and gives members a whole
// session when it is back.
func (b *broker) stop() {
	b.down = b.w.now + 500 + b.w.rng.Int64N(5000)
	b.w.say("the broker stops for %d ms", b.down-b.w.now)
	b.w.after(b.down-b.w.now, nil, func() {
		for _, g := range b.w.groups {
			for m := range g.seen {
				g.seen[m] = b.w.now
			}
		}
	})
}

// loseTails takes the newest messages from the logs of a partition, as a power cut or an
// unclean election does: acknowledged ones too, and from each log as much as it likes.
//
// The broker refuses the producer of a group whose records were lost, since its sequence
// numbers do not follow. So what a group remembers is what its state topic still says.
func (b *broker) loseTails(i int) {
	p := b.parts[i]
	until := func() int64 {
		if b.w.rng.IntN(2) == 0 {
			return b.w.now
		}
		return b.w.now - b.w.rng.Int64N(mostLost)
	}
	windows, alerts, features := len(p.windows), len(p.alerts), len(p.features)
	at := until()
	p.windows = slices.DeleteFunc(p.windows, func(win *sentWindow) bool { return win.at > at })
	at = until()
	var gone []*sentCommand
	p.commands = slices.DeleteFunc(p.commands, func(c *sentCommand) bool {
		if c.when > at {
			gone = append(gone, c)
		}
		return c.when > at
	})
	at = until()
	p.alerts = slices.DeleteFunc(p.alerts, func(a alertRecord) bool { return a.txn.ended > at })
	p.loseFeatures(until())
	b.w.check.featuresLost()
	b.w.say("partition %d loses %d windows, %d features, %d commands, %d alerts", i, windows-len(p.windows), features-len(p.features), len(gone), alerts-len(p.alerts))
	p.cuts[windowLog] = append(p.cuts[windowLog], len(p.windows))
	p.cuts[commandLog] = append(p.cuts[commandLog], len(p.commands))
	p.cuts[alertLog] = append(p.cuts[alertLog], len(p.alerts))
	p.cuts[featureLog] = append(p.cuts[featureLog], len(p.features))
	p.kept[windowLog], p.kept[featureLog] = min(p.kept[windowLog], len(p.windows)), min(p.kept[featureLog], len(p.features))
	for _, g := range b.w.groups {
		b.w.check.cut(g, i, gone)
		b.loseState(g, i, until(), alerts > len(p.alerts) || features > len(p.features))
		b.losePosition(g, i, until())
	}
	b.w.route.lost(i)
}

// loseFeatures takes the features that were written after that time.
func (p *part) loseFeatures(at int64) {
	if i := slices.IndexFunc(p.features, func(f *sentFeatures) bool { return f.at > at }); i >= 0 {
		p.features = p.features[:i:i]
	}
	p.settled = min(p.settled, len(p.features))
	p.findEdgeEnd()
}

// asked notes what a group passes over when its reader asks for the message at an offset,
// and has been told of that many cuts before.
func (p *part) asked(log int, g *group, offset, end int, told *[logs]int) {
	for _, cut := range p.cuts[log][told[log]:] {
		if to := min(offset, end); to > cut {
			p.passed = append(p.passed, passed{log, g, cut, to})
		}
	}
	told[log] = len(p.cuts[log])
}

// hidden reports whether a group may have passed a message over.
func (p *part) hidden(log int, g *group, offset int) bool {
	return slices.ContainsFunc(p.passed, func(h passed) bool {
		return h.log == log && h.group == g && h.from <= offset && offset < h.to
	})
}

// fenceLost aborts what an owner has open, and fences it if it has lost something.
func (b *broker) fenceLost(o *producer, lost bool) {
	if o == nil {
		return
	}
	if o.open != nil {
		o.open.aborted, o.open, lost = true, nil, true
	}
	if lost && b.w.Bug != SurvivesLoss {
		o.epoch++
	}
}

// loseState takes from a group what it wrote to the state of a partition after that time.
// Others says that other logs have lost messages of monitors.
func (b *broker) loseState(g *group, i int, at int64, others bool) {
	p := b.parts[i]
	keeps := func(t *txn) bool { return t.group != g || t.committed && t.ended <= at }
	before := len(p.state)
	p.state = slices.DeleteFunc(p.state, func(r stateRecord) bool { return !keeps(r.txn) })
	b.fenceLost(b.owned[transactionalID(g, i)], others || len(p.state) < before)
	for _, t := range slices.Backward(g.log[i]) {
		if keeps(t) || t.stateLost {
			continue
		}
		t.stateLost = true
		b.w.check.lost(t)
		for _, f := range slices.Backward(t.forget) {
			f()
		}
	}
	if n := before - len(p.state); n > 0 {
		b.w.say("  and %d state records of %s", n, g.name)
	}
}

// losePosition takes a group back to the position that it had committed at that time, or
// to the first one.
func (b *broker) losePosition(g *group, i int, at int64) {
	var left *txn
	for _, t := range g.log[i] {
		switch {
		case t.positionLost:
		case left == nil || t.ended <= at:
			left = t
		default:
			t.positionLost = true
			b.w.check.lost(t)
			for _, f := range t.forgetPosition {
				f()
			}
		}
	}
	if left != nil && left.position != g.positions[i] {
		b.w.say("  and %s goes back from position %v to %v", g.name, g.positions[i], left.position)
		g.positions[i] = left.position
	}
}
