package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// tone returns the window of a second with a sine of 500 Hz and amplitude √2 in ch01:
// its mean square is 1.
func tone(n int) *window.Window {
	w := second(n)
	for i := range w.Samples[0] {
		w.Samples[0][i] = float32(math.Sqrt2 * math.Sin(2*math.Pi*500*float64(i)/2000))
	}
	return w
}

func writeTones(t testing.TB, s *Store, numbers ...int) {
	t.Helper()
	_, err := s.Write("A-K3ZQ7M2P-5", newCodec(t), facts, func(add func(*window.Window) error) error {
		for _, n := range numbers {
			if err := add(tone(n)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A sine of mean square 1 has that power around its frequency, in the window that decided
// and in every column of which samples are there.
func TestSpectra(t *testing.T) {
	s, _ := open(t, 0)
	writeTones(t, s, 0, 1, 4, 5, 6, 7, 8, 9)
	got, err := s.Spectra("A-K3ZQ7M2P-5", "ch01")
	if err != nil {
		t.Fatal(err)
	}
	if got.Unit != "g" || got.Rate != 2000 || !got.At.Equal(facts.At) {
		t.Errorf("%s, %v samples a second, at %v", got.Unit, got.Rate, got.At)
	}
	power := func(level func(int) *float64, n int, hz float64) (sum float64, top int) {
		best := math.Inf(-1)
		for i := range n {
			if v := level(i); v != nil {
				sum += hz * math.Pow(10, *v/10)
				if *v > best {
					best, top = *v, i
				}
			}
		}
		return sum, top
	}
	p, top := power(func(i int) *float64 { return got.Level[i] }, len(got.Level), got.Hz)
	if f := float64(top+1) * got.Hz; math.Abs(p-1) > 0.03 || f != 500 {
		t.Errorf("the window that decided has mean square %.3f and its line at %.1f Hz, want 1 at 500 Hz", p, f)
	}
	if len(got.Columns) < 20 || len(got.Columns) > maxColumns {
		t.Fatalf("%d columns", len(got.Columns))
	}
	for i, c := range got.Columns {
		at := (float64(i) + 0.5) * 10 / float64(len(got.Columns)) // seconds
		if gap := at > 2.2 && at < 3.8; gap != (c == nil) && (at < 1.8 || at > 4.2 || gap) {
			t.Errorf("column %d at second %.2f: there %v", i, at, c != nil)
		}
		if c == nil || at < 0.2 || math.Abs(at-2) < 0.2 || math.Abs(at-4) < 0.2 || at > 9.8 {
			continue
		}
		p, top := power(func(i int) *float64 {
			if c[i] == nil {
				return nil
			}
			v := float64(*c[i])
			return &v
		}, len(c), got.RowHz)
		if f := float64(top+1) * got.RowHz; math.Abs(10*math.Log10(p)) > 0.7 || math.Abs(f-500) > got.RowHz {
			t.Errorf("column %d has mean square %.3f and its line at %.1f Hz", i, p, f)
		}
	}
}

func TestSpectraOfAWindowThatIsGone(t *testing.T) {
	s, _ := open(t, 0)
	writeTones(t, s, 7, 8)
	got, err := s.Spectra("A-K3ZQ7M2P-5", "ch01")
	if err != nil || len(got.Level) != 0 || got.Columns[0] != nil || got.Columns[len(got.Columns)*3/4] == nil {
		t.Errorf("%v; %d levels of a window that is not there", err, len(got.Level))
	}
}

func TestSpectraFail(t *testing.T) {
	s, dir := open(t, 0)
	writeTones(t, s, 4, 5)
	for why, tc := range map[string]struct {
		name, channel string
		want          error
	}{
		"a channel of another layout":    {"A-K3ZQ7M2P-5", "ch99", window.ErrNoChannel},
		"a fact is not a channel":        {"A-K3ZQ7M2P-5", "tool", window.ErrNoChannel},
		"ten samples a window":           {"A-K3ZQ7M2P-5", "torque", ErrNoSpectrum},
		"an alert whose evidence is not": {"A-K3ZQ7M2P-6", "ch01", fs.ErrNotExist},
	} {
		if _, err := s.Spectra(tc.name, tc.channel); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", why, err, tc.want)
		}
	}
	path := filepath.Join(dir, "A-K3ZQ7M2P-5.arrow")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b[:len(b)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Spectra("A-K3ZQ7M2P-5", "ch01"); !errors.Is(err, window.ErrCorrupt) {
		t.Errorf("half a file: %v", err)
	}
}

func TestHandlerOfSpectra(t *testing.T) {
	s, _ := open(t, 0)
	writeTones(t, s, 4, 5)
	for path, want := range map[string]int{
		"/api/evidence/A-K3ZQ7M2P-5/spectra?channel=ch01":   http.StatusOK,
		"/api/evidence/A-K3ZQ7M2P-5/spectra?channel=torque": http.StatusNotFound,
		"/api/evidence/A-K3ZQ7M2P-5/spectra":                http.StatusNotFound,
		"/api/evidence/A-K3ZQ7M2P-6/spectra?channel=ch01":   http.StatusNotFound,
		"/api/evidence/secret/spectra?channel=ch01":         http.StatusNotFound,
	} {
		rec := httptest.NewRecorder()
		s.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
		if rec.Code != want || want == http.StatusOK && !json.Valid(rec.Body.Bytes()) {
			t.Errorf("%s: %d %.100s", path, rec.Code, rec.Body)
		}
	}
}

// What is usual for the tool is kept with each channel, and comes with its spectra.
func TestUsualBands(t *testing.T) {
	s, dir := open(t, 0)
	of := facts
	of.Usual = []Band{{"ch01", 0, 500, -40}, {"torque", 0, 5, -20}, {"ch01", 500, 1000, 0}}
	if _, err := s.Write("A-K3ZQ7M2P-5", newCodec(t), of, seconds(4)); err != nil {
		t.Fatal(err)
	}
	got, err := s.Spectra("A-K3ZQ7M2P-5", "ch01")
	if err != nil || len(got.Usual) != 2 || got.Usual[0] != (Band{"", 0, 500, -40}) || got.Usual[1] != (Band{"", 500, 1000, 0}) {
		t.Errorf("%+v, %v", got.Usual, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "A-K3ZQ7M2P-5.json"))
	if err != nil || !bytes.Contains(text, []byte(`{"low_hz":500,"high_hz":1000,"db":0}`)) {
		t.Errorf("%s, %v", text, err)
	}
	writeTones(t, s, 4)
	if got, err := s.Spectra("A-K3ZQ7M2P-5", "ch01"); err != nil || got.Usual != nil {
		t.Errorf("without a reference: %+v, %v", got, err)
	}
}

// A damaged file of evidence is an error that names the file, wherever the damage is.
func FuzzSpectra(f *testing.F) {
	s, dir := open(f, 0)
	writeTones(f, s, 4, 5)
	text, err := os.ReadFile(filepath.Join(dir, "A-K3ZQ7M2P-5.json"))
	if err != nil {
		f.Fatal(err)
	}
	windows, err := os.ReadFile(filepath.Join(dir, "A-K3ZQ7M2P-5.arrow"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text, windows)
	f.Add([]byte(`{"from":"0001-01-01T00:00:00Z","to":"9999-01-01T00:00:00Z","at":"2026-11-02T00:00:00Z","channels":[]}`), windows[:len(windows)-20])
	f.Fuzz(func(t *testing.T, text, windows []byte) {
		dir := t.TempDir()
		s, err := Open(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "A-K3ZQ7M2P-5.json"), text, 0o600), os.WriteFile(filepath.Join(dir, "A-K3ZQ7M2P-5.arrow"), windows, 0o600)); err != nil {
			t.Fatal(err)
		}
		_, err = s.Spectra("A-K3ZQ7M2P-5", "ch01")
		if err != nil && !errors.Is(err, ErrNoSpectrum) && !errors.Is(err, window.ErrNoChannel) && !strings.Contains(err.Error(), "A-K3ZQ7M2P-5") {
			t.Fatalf("%v does not name the file", err)
		}
	})
}

// The spectra of a machine with many channels are read, although the envelope of all of them is long.
func TestSpectraOfManyChannels(t *testing.T) {
	const n = 400
	var channels []signal.Channel
	w := second(0)
	w.Samples, w.Quality = nil, make([]signal.Quality, n)
	for i := range n {
		channels = append(channels, signal.Channel{Name: fmt.Sprintf("ch%03d", i+1), Kind: signal.Vibration, Unit: "g", Rate: 600})
		x := make([]float32, 600)
		for k := range x {
			x[k] = float32(math.Sin(float64(i+k))) * 1e-5
		}
		w.Samples = append(w.Samples, x)
	}
	l, err := signal.NewLayout("many", channels)
	if err != nil {
		t.Fatal(err)
	}
	codec, err := window.NewCodec(l, window.DefaultSpec)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := open(t, 0)
	f := facts
	f.At, f.To = origin.Add(time.Second), origin.Add(time.Second)
	if _, err := s.Write("A-K3ZQ7M2P-5", codec, f, func(add func(*window.Window) error) error { return add(w) }); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Spectra("A-K3ZQ7M2P-5", "ch400"); err != nil || len(got.Level) == 0 {
		t.Errorf("%v", err)
	}
}
