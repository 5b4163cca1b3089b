package window

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/flank-tcm/flank/pkg/signal"
)

// TestWriteFixtures writes a window and its features for bench/peers/formats/features.py.
func TestWriteFixtures(t *testing.T) {
	to := os.Getenv("FLANK_PEERS")
	if to == "" {
		t.Skip("set FLANK_PEERS to a folder for the fixtures; make peers-formats does")
	}
	l := signal.GunDrill()
	w := example(l, DefaultSpec)
	rng := rand.New(rand.NewPCG(1, 2))
	for i, x := range w.Samples {
		for k := range x {
			x[k] = float32(i+1) * float32(rng.NormFloat64())
		}
	}
	w.ToolLife = "life-1"
	w.FeedRate, w.Programme, w.Material = 82.5, "O1234 <bore>", "42CrMo4"
	form := newForm(t, l, DefaultSpec, signal.FeatureSpec{}, nil)
	var x Features
	form.NewExtractor().Extract(w, &x)
	features, err := form.Seal(&x)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := newCodec(t, l, DefaultSpec).Seal(w)
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(map[string]any{
		"machine": w.Machine, "tool_life": w.ToolLife, "seq": w.Seq, "start": w.Start, "level": x.Level, "fingerprint": form.Fingerprint(), "layout": l.Fingerprint(),
		"control": map[string]string{"feed_rate": "82.5", "programme": w.Programme, "material": w.Material},
		"names":   form.Names(), "values": arrow.Float32Traits.CastToBytes(x.Values), "frames": arrow.Float32Traits.CastToBytes(x.Frames),
	})
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(to, "features")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"features.arrow": features.Value, "window.arrow": sealed.Value, "want.json": want} {
		if err := os.WriteFile(filepath.Join(folder, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
