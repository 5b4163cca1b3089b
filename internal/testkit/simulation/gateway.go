package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// gateway cuts one window a second of a machine and sends them in order, one at a time,
// until Kafka has them. It is a model of what packages internal/ingest/gateway and internal/ingest/spool
// do, and which windows are there is all that monitors see of it.
type gateway struct {
	w       *world
	machine string
	cut     []*sentWindow // everything that the machine's windows are, in the order of cutting
	next    int           // to be sent
	epoch   uint64        // of the spool
	seq     uint64
	tool    string
	left    int // windows until the tool changes
	wear    map[string]float64
	level   map[string]float32 // what a tool reads while it is new
	off     int                // windows in which a worn tool reads as if it were new, and a new one as if it were worn
	clock   time.Duration      // how far the sensors' clock is ahead
	idle    int                // windows in which nothing is cut
	deaf    int                // windows in which its sensor fails
	fault   signal.Quality     // of the sensor
	one     bool               // of two sensors fails
	long    int                // windows that are twice as long
	unsure  int                // windows in which it reads half as much again
	stops   bool               // while it is renamed
	spools  uint64             // that other ingesters have begun
	lean    bool               // it extracts what the first models of its layout take, and no more
	lives   map[string]string
	rival   int  // windows that a second ingester still sends
	twin    bool // these are of the machine's own tool
	foreign bool // and of the other layout
	other   int  // windows of another length that a third one still sends
	two     bool // values: its layout
	brief   int  // windows until it has its former layout again; 0: it stays
	models  *Models
	edge    bool // it sends features, not windows

	drops   bool         // a full spool gives up its oldest windows, and does not wait
	full    int64        // the spool has no room until then
	broken  int64        // the gateway has given the machine up until then, since the disk refused a window three times
	dropped map[int]bool // of cut: given up by a full spool
	numbers uint64       // that were given out for windows, in all epochs
	told    uint64       // that the gateway has declared as lost
}

func newGateway(w *world, i int, models *Models) *gateway {
	g := &gateway{w: w, two: i == machines-1, models: models, lean: w.rng.IntN(4) == 0, edge: w.rng.IntN(4) == 0, machine: fmt.Sprintf("acme/line%d/mill%d", i%2, i), epoch: uint64(100 * (i + 1)), wear: make(map[string]float64), level: make(map[string]float32), lives: make(map[string]string), dropped: make(map[int]bool), drops: i%2 == 0}
	w.after(w.rng.Int64N(1000), nil, g.tick)
	return g
}

func (g *gateway) done() bool { return len(g.cut) >= g.w.Windows && g.next == len(g.cut) }

// takeTool puts another tool in.
func (g *gateway) takeTool() {
	w := g.w
	g.tool, g.left = fmt.Sprintf("T%d", w.rng.IntN(4)), 8+w.rng.IntN(30)
	if w.fault(0.08, "unnamed tool of ", g.machine) {
		g.tool = ""
	}
	if w.fault(0.15, "brief tools of ", g.machine) {
		g.left = 1 + w.rng.IntN(4)
	}
	if w.rng.IntN(6) == 0 { // a fresh insert under the old number
		g.lives[g.tool] = fmt.Sprintf("life %d", len(g.cut))
		g.wear[g.tool] = 0
	}
	if g.wear[g.tool] == 0 {
		g.level[g.tool] = 8 + 8*w.rng.Float32()
	}
}

// tick cuts a window.
func (g *gateway) tick() {
	if len(g.cut) >= g.w.Windows {
		return
	}
	w := g.w
	if !g.stops && w.fault(0.006, "another name for ", g.machine) {
		g.stops = true
		g.rename(patience)
	}
	if g.stops {
		w.after(1000, nil, g.tick)
		return
	}
	if g.left == 0 {
		g.takeTool()
	}
	g.left--
	g.wear[g.tool] += 0.015 + 0.02*w.rng.Float64()
	g.trouble()
	if !g.store() {
		w.after(1000, nil, g.tick)
		return
	}
	if w.fault(0.01, "another mode of ", g.machine) {
		g.edge = !g.edge
		w.say("%s sends features: %v", g.machine, g.edge)
	}
	g.add()
	if g.rival > 0 {
		g.rival--
		tool := "X"
		if g.twin {
			tool = g.tool
		}
		w.broker.produce(g.window(9000+g.spools, uint64(1000-g.rival), tool, w.now, g.two != g.foreign))
	} else if w.fault(0.003, "second ingester of ", g.machine) {
		g.rival, g.twin, g.foreign = 1+w.rng.IntN(20), w.rng.IntN(3) == 0, w.rng.IntN(3) == 0
		g.spools++
	}
	if g.other > 0 {
		g.other--
		win := g.window(8000+g.spools, uint64(1000-g.other), "Y", w.now, g.two)
		win.other = true
		w.broker.produce(win)
	} else if w.fault(0.004, "windows of another length from ", g.machine) {
		g.other = 1 + w.rng.IntN(10)
		g.spools++
	}
	w.after(1000, nil, g.tick)
}

// trouble draws what is wrong with the sensors, the layout and the spool from now on.
func (g *gateway) trouble() {
	w := g.w
	switch {
	case g.off > 0:
		g.off--
	case w.fault(0.04, "other values of ", g.machine):
		g.off = 1 + w.rng.IntN(8)
	}
	for _, spell := range []struct {
		left *int
		p    float64
		name string
	}{{&g.idle, 0.03, "nothing is cut by "}, {&g.deaf, 0.02, "the sensor fails of "}, {&g.long, 0.005, "longer windows of "}, {&g.unsure, 0.02, "odd values of "}} {
		if *spell.left > 0 {
			*spell.left--
		} else if w.fault(spell.p, spell.name, g.machine) {
			*spell.left = 1 + w.rng.IntN(12)*(1+w.rng.IntN(3))
		}
	}
	switch {
	case g.brief == 1:
		g.two, g.brief = !g.two, 0
	case g.brief > 1:
		g.brief--
	case w.fault(0.006, "another layout of ", g.machine): // and perhaps of a new gateway, whose spool is new
		if g.two, g.brief = !g.two, w.rng.IntN(8); w.rng.IntN(3) == 0 {
			g.epoch, g.seq = g.epoch+1, 0
		}
	}
	if w.fault(0.005, "a stray window of another layout of ", g.machine) {
		g.spools++
		w.broker.produce(g.window(7000+g.spools, uint64(w.rng.IntN(5)), g.tool, w.now, !g.two))
	}
	if g.deaf == 0 {
		g.fault, g.one = []signal.Quality{signal.Dropout, signal.Dropout, signal.Clipped, signal.ClockStep, signal.Flatline | signal.RateError}[w.rng.IntN(5)], w.rng.IntN(2) == 0
	}
	if w.fault(0.01, "other features of ", g.machine) {
		g.lean = !g.lean
	}
	switch {
	case w.fault(0.005, "clock of the sensors of ", g.machine):
		g.clock = time.Duration(w.rng.IntN(240)-120) * time.Second / 2
	case w.fault(0.02, "windows that overlap, of ", g.machine):
		g.clock -= time.Duration(1+w.rng.IntN(9)) * time.Second / 10
	}
	switch {
	case w.fault(0.003, "lost spool of ", g.machine): // numbers begin again in a new epoch
		g.epoch++
		g.seq = 0
	case w.fault(0.005, "bad sector in the spool of ", g.machine):
		n := 1 + w.rng.Uint64N(3) // windows that were numbered and cannot be read
		g.seq += n
		g.numbers += n
		g.told += n
	}
	if w.fault(0.005, "a number far ahead of ", g.machine) { // one stray window, or all that follow
		if w.rng.IntN(2) == 0 {
			w.broker.produce(g.window(g.epoch, g.seq+uint64(1+w.rng.IntN(400))<<20, g.tool, w.now, g.two)) // no other window gets the number
		} else {
			n := uint64(250 + w.rng.IntN(100))
			g.seq, g.numbers, g.told = g.seq+n, g.numbers+n, g.told+n
		}
	}
}

// add cuts a window.
func (g *gateway) add() {
	win := g.window(g.epoch, g.seq, g.tool, int64(len(g.cut))*1000, g.two)
	win.edge = g.edge
	g.cut = append(g.cut, win)
	g.seq++
	g.numbers++
	if len(g.cut)-1 == g.next {
		g.send(g.next)
	}
}

// last cuts one window more once faults have ended, so that every monitor sees its machine
// after the last deployment.
func (g *gateway) last() { g.add() }

// store reports whether the spool takes a window, which gets its number with that. While
// the disk is full the gateway waits with the window that it has, and cuts no other, or it
// gives up the oldest that were not delivered; see gateway.store and spool.free.
func (g *gateway) store() bool {
	w := g.w
	switch {
	case w.fault(0.004, "full disk of ", g.machine):
		g.full = w.now + 1000 + w.rng.Int64N(20000)
	case w.fault(0.003, "refused writes in the spool of ", g.machine):
		if w.rng.IntN(2) == 0 { // it goes on in another file at the second or third try, or it does not
			g.broken = w.now + 5000
		}
	}
	switch {
	case w.now >= g.broken && w.now >= g.full:
		return true
	case w.now < g.broken || !g.drops:
		if w.Bug == NumbersRefused {
			g.seq++
			g.numbers++
		}
		return false
	}
	g.giveUp(1 + w.rng.IntN(8)) // a segment
	return true
}

// giveUp gives up the oldest n windows that were not delivered.
func (g *gateway) giveUp(n int) {
	for i := g.next; i < min(len(g.cut), g.next+n); i++ {
		if !g.dropped[i] {
			g.dropped[i] = true
			g.told++
			g.w.say("the spool of %s gives up window %d", g.machine, g.cut[i].Seq)
		}
	}
}

// window makes a window of a tool, of one of the layouts: a worn one reads twice of what it reads when it is new.
func (g *gateway) window(epoch, seq uint64, tool string, at int64, two bool) *sentWindow {
	win := machinetest.At(seq, tool, false)
	win.Machine, win.Epoch, win.Start = g.machine, epoch, epoch0.Add(time.Duration(at)*time.Millisecond+g.clock)
	win.ToolLife = g.lives[tool]
	value, of := cmp.Or(g.level[tool], 10), g.models.One[0]
	switch {
	case g.idle > 0:
		value = 0.1 * float32(seq%3)
	case g.unsure > 0:
		value *= 1.5
	case (g.wear[tool] > 0.5) != (g.off > 0):
		value *= 2
	}
	win.Samples[0][0] = value
	if g.deaf > 0 {
		win.Quality[0] = g.fault
	}
	switch {
	case two:
		of, win.Samples, win.Quality = g.models.Two[0], slices.Repeat(win.Samples, 2), slices.Repeat(win.Quality, 2)
		if g.one {
			win.Quality[1] = 0
		}
	case g.long > 0:
		win.Length, win.Samples[0], of = 2*time.Second, []float32{value, value}, g.models.long
	case !g.lean:
		of = g.models.full
	}
	return &sentWindow{Window: win, name: name(win), features: machinetest.Features(of, win)}
}

// send sends window i until it is acknowledged. A frame may be slow, so that it arrives
// behind later ones, and an answer may be lost, so that the window is there twice.
func (g *gateway) send(i int) {
	w := g.w
	acked := false
	var try func()
	try = func() {
		if acked {
			return
		}
		if g.dropped[i] {
			acked = true
			g.sent(i)
			return
		}
		delay := w.latency()
		if w.fault(0.004, "slow window of ", g.machine) {
			delay += w.rng.Int64N(15000)
		}
		w.after(delay, nil, func() {
			win := *g.cut[i]
			if !w.broker.produce(&win) || w.fault(0.006, "lost answer to ", g.machine) {
				return
			}
			w.after(w.latency(), nil, func() {
				if acked {
					return
				}
				acked = true
				g.sent(i)
			})
		})
		w.after(3000, nil, try)
	}
	try()
	if i > 20 && w.fault(0.004, "resend of ", g.machine) { // from a spool that keeps what was acknowledged, or an old disk
		from := max(0, i-1-w.rng.IntN(40))
		for k := from; k < min(from+5, i); k++ {
			win := *g.cut[k]
			win.edge = g.edge
			w.after(w.rng.Int64N(2000), nil, func() { w.broker.produce(&win) })
		}
	}
}

// sent goes on behind window i.
func (g *gateway) sent(i int) {
	if g.next > i {
		return
	}
	if g.next = i + 1; g.next < len(g.cut) {
		g.send(g.next)
	}
}

// end checks that every window that was kept is on Kafka, and that numbers are missing
// only where the gateway said so.
func (g *gateway) end() {
	kept := g.told
	for i, win := range g.cut {
		if g.dropped[i] {
			continue
		}
		kept++
		if !g.w.broker.came[win.name] {
			g.w.fail("%s: window %s was kept and never sent", g.machine, win.name)
		}
	}
	if kept != g.numbers {
		g.w.fail("%s: %d windows got a number, and %d were kept or declared as lost", g.machine, g.numbers, kept)
	}
}

// name identifies a window in ids.
func name(w *window.Window) string { return nameOf(w.Machine, w.EpochString(), w.Seq) }

func nameOf(machine, epoch string, seq uint64) string {
	return machine + "/" + epoch + "/" + strconv.FormatUint(seq, 10)
}
