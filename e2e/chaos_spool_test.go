//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/ingest/spool"
)

// extent is where a record lies in a file of a spool.
type extent struct {
	file     string
	from, to int
}

// template is a spool with known bytes.
type template struct {
	files    map[string][]byte
	payloads [][]byte // by seq
	at       []extent
	acked    int
}

var segments = spool.Settings{SegmentBytes: 64 << 10, Keep: time.Hour}

// newTemplate writes a spool whose first records were delivered.
func newTemplate(t *testing.T, records, acked int) template {
	t.Helper()
	dir, rng := t.TempDir(), rand.New(rand.NewPCG(7, 7))
	s, _, err := spool.Open(dir, segments)
	if err != nil {
		t.Fatal(err)
	}
	tp := template{files: make(map[string][]byte), acked: acked}
	for range records {
		tp.payloads = append(tp.payloads, noise(rng, 1+rng.IntN(6000)))
		if _, err := s.Append(tp.payloads[len(tp.payloads)-1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Sync(), s.Ack(uint64(acked-1)), s.Close()); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	tp.at = make([]extent, records)
	for _, path := range names {
		name, text := filepath.Base(path), read(t, path)
		tp.files[name] = text
		if !strings.HasSuffix(name, ".seg") {
			continue
		}
		for at := 0; at < len(text); { // the form of a record is in internal/ingest/spool/record.go
			end := at + 24 + int(binary.LittleEndian.Uint32(text[at+4:]))
			tp.at[binary.LittleEndian.Uint64(text[at+8:])] = extent{name, at, end}
			at = end
		}
	}
	return tp
}

// damage writes the template to dir with one to three damages. It returns the records that they
// touch.
func (tp template) damage(t *testing.T, dir string, rng *rand.Rand) (touched []bool) {
	t.Helper()
	files := make(map[string][]byte)
	names := []string{}
	for name, text := range tp.files {
		files[name] = bytes.Clone(text)
	}
	for seq := 0; seq < len(tp.at); seq++ { // in order, so that a seed means the same damage
		if n := tp.at[seq].file; len(names) == 0 || names[len(names)-1] != n {
			names = append(names, n)
		}
	}
	touched = make([]bool, len(tp.at))
	touch := func(name string, from, to int) {
		for seq, at := range tp.at {
			if at.file == name && at.from < to && from < at.to {
				touched[seq] = true
			}
		}
	}
	for range 1 + rng.IntN(3) {
		name := names[rng.IntN(len(names))]
		b := files[name]
		if len(b) == 0 {
			continue
		}
		at := rng.IntN(len(b))
		switch rng.IntN(5) {
		case 0: // a bit
			b[at] ^= 1 << rng.IntN(8)
			touch(name, at, at+1)
		case 1: // a sector of zeros or noise
			end := min(len(b), at+512)
			if clear(b[at:end]); rng.IntN(2) == 0 {
				copy(b[at:end], noise(rng, end-at))
			}
			touch(name, at, end)
		case 2: // cut short
			files[name] = b[:at]
			touch(name, at, len(tp.files[name]))
		case 3: // garbage behind the end
			files[name] = append(b, noise(rng, 1+rng.IntN(2000))...)
		case 4: // the cursor
			c := files["cursor"]
			c[rng.IntN(len(c))] ^= 1 << rng.IntN(8)
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return touched
}

// Row 7, first half. Spools are damaged at random and opened.
func spoolDamaged(t *testing.T, r *record) {
	n := r.n(1000, 100)
	tp := newTemplate(t, 300, 60)
	rng := rand.New(rand.NewPCG(70, 7))
	var longest time.Duration
	opened, lostUntouched, wrong, uncounted, lost, refusing := 0, 0, 0, 0, 0, 0
	for i := range n {
		dir := filepath.Join(t.TempDir(), strconv.Itoa(i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		touched := tp.damage(t, dir, rng)
		began := time.Now()
		s, rec, err := spool.Open(dir, segments)
		longest = max(longest, time.Since(began))
		if err != nil {
			t.Errorf("damage %d: %v", i, err)
			continue
		}
		opened++
		got := drainSpool(t, s)
		quarantined := int(s.Stats().Quarantined)
		missing, touchedAll, tailMissing := 0, 0, 0
		for seq := range tp.payloads {
			if touched[seq] {
				touchedAll++
			}
			payload, there := got[uint64(seq)]
			switch {
			case there && !bytes.Equal(payload, tp.payloads[seq]):
				wrong++
			case !there && seq >= tp.acked:
				missing++
				if !touched[seq] {
					lostUntouched++
				}
				if tailMissing++; seq < len(tp.payloads)-1 && got[uint64(seq+1)] != nil {
					tailMissing = 0
				}
			case there:
				tailMissing = 0
			}
		}
		lost += missing
		if rec.TornBytes == 0 && !tp.tailCut(touched) {
			tailMissing = 0
		}
		if quarantined < missing-tailMissing || quarantined > touchedAll {
			uncounted++
			t.Errorf("damage %d: %d records are missing, %d of them at the end; %d counted, %d touched; recovery %+v", i, missing, tailMissing, quarantined, touchedAll, rec)
		}
		// It takes new records, and gives them back.
		if seq, err := s.Append([]byte("new")); err != nil || s.Sync() != nil || string(drainSpool(t, s)[seq]) != "new" {
			refusing++
			t.Errorf("damage %d: a record appended afterwards does not come back: %v", i, err)
		}
		s.Close()
		_ = os.RemoveAll(dir)
	}
	count := fmt.Sprintf("%d spools of 300 records, one to three damages each", n)
	r.exact(figure{What: "damaged spools that open and take new records", Count: count, Goal: "all", Measured: fmt.Sprintf("%d, %d of them take none", opened, refusing)}, opened == n && refusing == 0)
	r.exact(figure{
		What: "damaged spools: records lost that no damage touched / delivered with other bytes", Count: count, Goal: "0 / 0",
		Measured: fmt.Sprintf("%d / %d; %d lost by damage", lostUntouched, wrong, lost),
	}, lostUntouched+wrong == 0)
	r.exact(figure{
		What: "damaged spools: losses not counted", Count: count, Goal: "0", Measured: fmt.Sprint(uncounted),
		Note: "Missing records at the very end of the newest file look like a write that a crash cut off: the spool reports them as bytes cut, not as records lost.",
	}, uncounted == 0)
	r.measured(figure{What: "damaged spools: longest time to open", Count: count, Goal: "≤ 5 s", Measured: fmt.Sprintf("%.2f s", longest.Seconds())}, longest <= 5*time.Second)
}

// tailCut reports whether damage touched the last record, so that the file may just
// end before it.
func (tp template) tailCut(touched []bool) bool { return touched[len(touched)-1] }

// drainSpool returns the records that can be read now, by seq.
func drainSpool(t *testing.T, s *spool.Spool) map[uint64][]byte {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	got := make(map[uint64][]byte)
	for {
		rec, err := s.Next(ctx)
		if errors.Is(err, context.Canceled) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		got[rec.Seq] = bytes.Clone(rec.Payload)
	}
}

// Row 7, second half. An ingester starts with a long backlog.
func backlog(t *testing.T, r *record) {
	total := int64(r.n(8<<30, 256<<20))
	p := newPlant(t, 1, 1, 10, 0)
	s, _, err := spool.Open(p.file("spool"), spool.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	m := p.mint(machine).good(0)
	m.Value = noise(rand.New(rand.NewPCG(8, 8)), 960_000)
	written := int64(0)
	for n := 0; written < total; n++ {
		binary.LittleEndian.PutUint64(m.Value, uint64(n))
		payload := m.AppendBinary(nil)
		if _, err := s.Append(payload); err != nil {
			t.Fatal(err)
		}
		if written += int64(len(payload)); n%64 == 63 {
			if err := s.Sync(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for what, broker := range map[string]string{"broker away": "127.0.0.1:1", "while it is sent": p.b.Addr()} {
		write(t, p.dir, "ingest.yaml", fmt.Sprintf("machine: %s\nkafka: {brokers: [%q]}\nspool: spool\nspool_mib: 0\nsource: {kind: simulate}\n", machine, broker))
		began := time.Now()
		ingester := p.launch(broker+".log", "ingest", "run", "--config", p.file("ingest.yaml"))
		for !strings.Contains(p.log(broker+".log"), `"ingesting"`) && time.Since(began) < patience {
			time.Sleep(5 * time.Millisecond)
		}
		took := time.Since(began)
		time.Sleep(time.Duration(r.n(15, 3)) * time.Second)
		if err := ingester.alive(); err != nil {
			t.Errorf("%v\n%s", err, tail(p.log(broker+".log")))
		}
		most := ingester.status("VmHWM") >> 10
		ingester.kill()
		count := fmt.Sprintf("%.2f GiB of backlog", float64(written)/(1<<30))
		r.measured(figure{What: "start with a backlog, " + what + ": most memory of the ingester", Count: count, Goal: "≤ 256 MiB", Measured: fmt.Sprintf("%d MiB", most)}, most <= 256 && most > 0)
		r.measured(figure{What: "start with a backlog, " + what + ": until it acquires", Count: count, Goal: "≤ 5 s", Measured: fmt.Sprintf("%.2f s", took.Seconds())}, took <= 5*time.Second)
	}
}

// Row 8. The spool's disk fills while the broker is away.
func diskFull(t *testing.T, r *record) {
	rounds := r.n(10, 2)
	lives := r.n(10_000, 300)
	sim := exec.Command("go", "test", "-count", "1", "-run", "TestSimulation", "../internal/ingest/spool")
	sim.Env = append(os.Environ(), "FLANK_SEEDS="+strconv.Itoa(lives))
	text, err := sim.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, tail(string(text)))
	}
	r.exact(figure{
		What: "simulated disk: lives that lose an acknowledged record, deliver another or get stuck", Count: fmt.Sprintf("%d lives", lives), Goal: "0", Measured: map[bool]string{true: "0", false: "some"}[err == nil],
		Note: "`internal/ingest/spool`'s simulation: short writes, refused writes, syncs, renames and removals, no space, lost writes after a failed sync, reordering at a power cut, flipped bits, against a model.",
	}, err == nil)
	for _, policy := range []string{"block", "drop_oldest"} {
		t.Run(policy, func(t *testing.T) { r.full(t, policy, rounds) })
	}
}

// full fills a disk of 6 MiB again and again.
func (r *record) full(t *testing.T, policy string, rounds int) {
	p := newPlant(t, 1, rounds, 8000, 0)
	disk := p.file("disk")
	if err := os.Mkdir(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=6m", "flank", disk).CombinedOutput(); err != nil {
		r.measured(figure{What: "full disk, " + policy, Goal: "0 lost", Measured: "not run: " + strings.TrimSpace(string(text)), Note: "A disk of 6 MiB is mounted, which takes the right to."}, false)
		return
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", disk).Run() })
	configure := func(speed int) {
		write(t, p.dir, "ingest.yaml", fmt.Sprintf("machine: %s\nkafka: {brokers: [%q]}\nlayout: layout.yaml\nspool: disk/spool\nspool_mib: 0\nspool_full: %s\nsource: {kind: csv, file: day.csv, speed: %d}\n",
			machine, p.b.Addr(), policy, speed))
	}
	configure(600)
	sent := p.windows()
	ingester := p.launch("ingest.log", "ingest", "run", "--config", p.file("ingest.yaml"))
	says := map[string]string{"block": "stopped acquiring because the spool is full", "drop_oldest": "dropped the oldest windows because the spool is full"}[policy]
	full := 0
	var longest time.Duration
	for range rounds {
		sent.until(min(sent.count()+100, len(p.rows)))
		said := strings.Count(p.log("ingest.log"), says)
		p.b.Kill()
		// The spool is full if it says so again, or has said so and does not change.
		size, still := int64(-1), time.Now()
		for began := time.Now(); ingester.alive() == nil && time.Since(began) < patience; time.Sleep(20 * time.Millisecond) {
			if now := spoolBytes(filepath.Join(disk, "spool")); now != size {
				size, still = now, time.Now()
			}
			if n := strings.Count(p.log("ingest.log"), says); n > said || n > 0 && time.Since(still) > 2*time.Second {
				full++
				break
			}
		}
		time.Sleep(time.Second)
		p.b.Restart(t)
		began := time.Now()
		if n := sent.count(); !sent.reached(min(n+1, len(p.rows)), 20*time.Second) {
			t.Fatalf("nothing is sent 20 s after the broker is back; %d windows are there\n%s", n, tail(p.log("ingest.log")))
		}
		longest = max(longest, time.Since(began))
	}
	if err := ingester.alive(); err != nil && sent.count() < len(p.rows)/2 {
		t.Errorf("%v\n%s", err, tail(p.log("ingest.log")))
	}
	ingester.kill()
	configure(0)
	p.launch("ingest.log", "ingest", "run", "--config", p.file("ingest.yaml"))
	if !sent.reached(len(p.rows), 20*time.Second) && policy == "block" {
		t.Errorf("stands still:\n%s", tail(p.log("ingest.log")))
	}
	sent.settle()
	lost := sent.lost(len(p.rows))
	dropped := 0
	for _, m := range regexp.MustCompile(`"windows":(\d+),.*dropped the oldest windows because the spool is full`).FindAllStringSubmatch(p.log("ingest.log"), -1) {
		n, _ := strconv.Atoi(m[1])
		dropped += n
	}
	count := fmt.Sprintf("%d times full", full)
	if policy == "block" {
		r.exact(figure{What: "full disk, block: windows lost / wrong", Count: count, Goal: "0 / 0", Measured: fmt.Sprintf("%d / %d of %d", lost, sent.wrong, len(p.rows))}, lost+sent.wrong == 0 && full == rounds)
	} else {
		r.exact(figure{
			What: "full disk, drop_oldest: windows missing / declared in the log", Count: count, Goal: "none undeclared", Measured: fmt.Sprintf("%d / %d of %d", lost, dropped, len(p.rows)),
			Note: "Windows that were on their way when their segment was given up count as given up, and may arrive all the same.",
		}, lost <= dropped && lost > 0 && sent.wrong == 0 && full == rounds)
	}
	r.measured(figure{What: "full disk, " + policy + ": longest until windows are sent again once the broker is there", Count: count, Goal: "≤ 5 s", Measured: fmt.Sprintf("%.1f s", longest.Seconds())}, longest <= 5*time.Second)
}
