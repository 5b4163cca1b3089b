//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// moment returns a time below most, drawn at random.
func moment(rng *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(most)))
}

// Row 1. An ingester is killed at random, half of the times while it sends and half
// of the times anywhere from its start on.
func ingestKilled(t *testing.T, r *record) {
	kills := r.n(200, 4)
	p := newPlant(t, 2, kills, 300, 1000) // one fsync for each window; slow enough for the recording to outlast the kills on any machine
	sent := p.windows()
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range kills {
		had := sent.count()
		ingester := p.ingest()
		if i%2 == 0 {
			sent.until(had + 1)
		}
		time.Sleep(moment(rng, 150*time.Millisecond))
		ingester.kill()
	}
	if n := sent.count(); n >= len(p.rows) {
		t.Fatalf("the recording of %d windows ended before the kills did", n)
	}
	under := sent.count()
	p.configure("kind: csv, file: day.csv, speed: 0")
	p.ingest().wait(t)
	sent.until(len(p.rows))
	r.delivered("ingester killed", fmt.Sprintf("%d SIGKILLs", kills), sent, len(p.rows))
	r.Figures[len(r.Figures)-1].Note = fmt.Sprintf("%d windows were sent between the kills, %d after the last.", under, len(p.rows)-under)
}

// Row 3. A monitor is killed at random while windows keep coming.
func monitorKilled(t *testing.T, r *record) {
	kills := r.n(200, 4)
	const speed = 200
	p := newPlant(t, 2, kills, 300, speed)
	ingester := p.ingest()
	v := p.verdicts()
	rng := rand.New(rand.NewPCG(3, 3))
	expired := 0
	for i := range kills {
		had := v.count()
		mon := p.monitor()
		if i%2 == 0 {
			v.until(min(had+1, len(p.rows)))
		}
		time.Sleep(moment(rng, 300*time.Millisecond))
		mon.kill()
		if i%50 == 49 {
			expired++ // the next monitor waits until the session of this one ends
		} else {
			p.evict()
		}
	}
	under := v.count()
	p.monitor()
	ingester.wait(t)
	v.until(len(p.rows))
	r.judged("monitor killed", fmt.Sprintf("%d SIGKILLs", kills), v, p.calm())
	r.Figures[0].Note = fmt.Sprintf("Windows came at %d a second; %d were judged between the kills. After all kills but %d the test reported to the broker that the "+
		"member was gone, as the broker finds out by itself 6 s later; otherwise the row would take twenty minutes.", speed, under, expired)
}

// Row 5. The broker is killed at random under an ingester and a monitor, which are not
// restarted.
func brokerKilled(t *testing.T, r *record) {
	kills := r.n(50, 2)
	const speed = 40
	p := newPlant(t, 2, kills, 300, speed)
	ingester, mon := p.ingest(), p.monitor()
	sent, v := p.windows(), p.verdicts()
	rng := rand.New(rand.NewPCG(5, 5))
	for range kills {
		// Both work again.
		sent.until(min(sent.count()+1, len(p.rows)))
		v.until(min(v.count()+1, len(p.rows)))
		time.Sleep(moment(rng, time.Second))
		p.b.Kill()
		p.b.Restart(t)
	}
	under := sent.count()
	p.speedUp(ingester)
	sent.until(len(p.rows))
	v.until(len(p.rows))
	if err := mon.alive(); err != nil {
		t.Error(err)
	}
	count := fmt.Sprintf("%d SIGKILLs", kills)
	r.delivered("broker killed", count, sent, len(p.rows))
	r.judged("broker killed", count, v, p.calm())
	r.Figures[0].Note = fmt.Sprintf("Windows came at %d a second; %d were sent between the kills. Ingester and monitor ran all the time.", speed, under)
}

// speedUp sends the rest of the recording at full speed, if the ingester has not finished.
func (p *plant) speedUp(ingester *process) {
	if ingester.alive() != nil {
		return
	}
	ingester.kill()
	p.configure("kind: csv, file: day.csv, speed: 0")
	p.ingest().wait(p.t)
}
