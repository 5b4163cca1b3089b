package evidence

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

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

func writeTones(t *testing.T, s *Store, numbers ...int) {
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
	if len(got.Columns) < 20 || len(got.Columns) > MaxColumns {
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
