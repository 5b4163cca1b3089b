package source

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/pkg/signal"
)

// TestPeers compares every value of every channel, bit by bit, with what
// reference readers found: see bench/peers/formats/reference.py.
func TestPeers(t *testing.T) {
	dir := os.Getenv("FLANK_PEERS")
	if dir == "" {
		t.Skip("make peers-formats runs this test")
	}
	refs, err := filepath.Glob(filepath.Join(dir, "*.ref", "index.json"))
	if err != nil || len(refs) == 0 {
		t.Fatalf("no references in %s: %v", dir, err)
	}
	channels, values := 0, 0
	for _, ref := range refs {
		text, err := os.ReadFile(ref)
		if err != nil {
			t.Fatal(err)
		}
		var index struct {
			Recording string
			Channels  []struct{ Name, File string }
		}
		if err := json.Unmarshal(text, &index); err != nil {
			t.Fatal(err)
		}
		f, err := OpenTracks(index.Recording, signal.Recording{})
		if err != nil {
			t.Error(err)
			continue
		}
		numeric := 0
		for _, info := range f.Tracks() {
			if !info.Text {
				numeric++
			}
		}
		if numeric != len(index.Channels) {
			t.Errorf("%s: %d tracks of numbers, the reference has %d", index.Recording, numeric, len(index.Channels))
		}
		for _, ch := range index.Channels {
			want, err := os.ReadFile(filepath.Join(filepath.Dir(ref), ch.File))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, f, index.Recording, ch.Name, want)
			channels++
			values += len(want) / 8
		}
		f.Close()
	}
	t.Logf("%d recordings, %d channels, %d values compared", len(refs), channels, values)
}

func compare(t *testing.T, f track.File, recording, name string, want []byte) {
	t.Helper()
	i := -1
	for k, info := range f.Tracks() {
		if info.Path() == name {
			i = k
		}
	}
	if i < 0 {
		t.Errorf("%s: no track %q", recording, name)
		return
	}
	r, err := f.Open([]int{i})
	if err != nil {
		t.Error(err)
		return
	}
	at := 0
	for {
		v, n, err := r.Read(1 << 20)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Error(err)
			return
		}
		for _, got := range v[0].Numbers[:n] {
			if 8*at >= len(want) {
				t.Errorf("%s: %s has more than the %d values of the reference", recording, name, len(want)/8)
				return
			}
			if w := math.Float64frombits(binary.LittleEndian.Uint64(want[8*at:])); got != w && !(got != got && w != w) {
				t.Errorf("%s: %s: value %d is %v, the reference has %v", recording, name, at, got, w)
				return
			}
			at++
		}
	}
	if 8*at != len(want) {
		t.Errorf("%s: %s has %d values, the reference %d", recording, name, at, len(want)/8)
	}
}
