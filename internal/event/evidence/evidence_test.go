package evidence

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"

	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

var origin = time.Date(2026, 11, 2, 2, 13, 40, 0, time.UTC)

const alert = "acme/line1/drill/0000000000000001/5/raised"

// facts are of ±5 s around the end of second 5.
var facts = Facts{
	Alert: alert, Machine: "acme/line1/drill", Incident: "A-K3ZQ7M2P", Model: "m",
	At: origin.Add(5 * time.Second), From: origin, To: origin.Add(10 * time.Second),
}

// newCodec returns a codec of a fast channel and a slow one.
func newCodec(t testing.TB) *window.Codec {
	l, err := signal.NewLayout("two rates", []signal.Channel{
		{Name: "ch01", Kind: signal.Vibration, Unit: "g", Rate: 2000}, {Name: "torque", Kind: signal.Torque, Unit: "N·m", Rate: 10},
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := window.NewCodec(l, window.DefaultSpec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// second returns the window of a second, whose samples read its number and end in
// 100 and −100.
func second(n int) *window.Window {
	w := &window.Window{
		Context: signal.Context{Machine: "acme/line1/drill"}, Epoch: 1, Seq: uint64(n), Start: origin.Add(time.Duration(n) * time.Second), Length: time.Second,
		Samples: [][]float32{make([]float32, 2000), make([]float32, 10)}, Quality: make([]signal.Quality, 2),
	}
	for _, x := range w.Samples {
		for i := range x {
			x[i] = float32(n)
		}
	}
	w.Samples[0][1998], w.Samples[0][1999] = 100, -100
	return w
}

func seconds(numbers ...int) func(func(*window.Window) error) error {
	return func(add func(*window.Window) error) error {
		for _, n := range numbers {
			if err := add(second(n)); err != nil {
				return err
			}
		}
		return nil
	}
}

func open(t testing.TB, keep int) (*Store, string) {
	dir := filepath.Join(t.TempDir(), "evidence")
	s, err := Open(dir, keep)
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

func TestWrite(t *testing.T) {
	s, dir := open(t, 0)
	for why, tc := range map[string]struct {
		windows []int
		want    int
		missing time.Duration
	}{
		"all of them, and those around left out":  {[]int{-2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 10, 0},
		"the last two never came":                 {[]int{0, 1, 2, 3, 4, 5, 6, 7}, 8, 2 * time.Second},
		"the first are gone, one is missing":      {[]int{3, 4, 6, 7, 8, 9}, 6, 4 * time.Second},
		"two in the middle of nowhere":            {[]int{5, 6}, 2, 8 * time.Second},
		"what is written again replaces the last": {[]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 10, 0},
	} {
		k, err := s.Write("A-K3ZQ7M2P-5", newCodec(t), facts, seconds(tc.windows...))
		if err != nil || k.Windows != tc.want || k.Missing != tc.missing {
			t.Errorf("%s: %+v, %v; want %d windows, %v missing", why, k, err, tc.want, tc.missing)
		}
		b, err := os.ReadFile(filepath.Join(dir, "A-K3ZQ7M2P-5.arrow"))
		if sum := sha256.Sum256(b); err != nil || int64(len(b)) != k.Bytes || hex.EncodeToString(sum[:]) != k.SHA256 {
			t.Errorf("%s: %d bytes with sum %x, %v; said %+v", why, len(b), sum, err, k)
		}
		r, err := ipc.NewFileReader(bytes.NewReader(b))
		if err != nil || r.NumRecords() != tc.want {
			t.Fatalf("%s: %v", why, err)
		}
		meta := r.Schema().Metadata()
		if i := meta.FindKey("at"); i < 0 || meta.Values()[i] != "2026-11-02T02:13:45Z" {
			t.Errorf("%s: metadata %v", why, meta)
		}
		rec, err := r.RecordAt(tc.want - 1)
		if err != nil {
			t.Fatal(err)
		}
		inside := slices.DeleteFunc(slices.Clone(tc.windows), func(n int) bool { return n < 0 || n > 9 })
		if x := rec.Column(len(rec.Columns()) - 1).(*array.FixedSizeList).ListValues().(*array.Float32); x.Value(0) != float32(inside[len(inside)-1]) {
			t.Errorf("%s: torque of the last window is %v", why, x)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
		t.Errorf("%v, %v", files, err)
	}
}

func TestEnvelope(t *testing.T) {
	s, dir := open(t, 0)
	if _, err := s.Write("A-K3ZQ7M2P-5", newCodec(t), facts, seconds(0, 1, 2, 3, 4, 6, 7, 8, 9)); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "A-K3ZQ7M2P-5.json"))
	if err != nil {
		t.Fatal(err)
	}
	var e envelope
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatal(err)
	}
	if e.Alert != alert || !e.From.Equal(facts.From) || !e.To.Equal(facts.To) || !e.At.Equal(facts.At) || len(e.Channels) != 2 {
		t.Fatalf("%.300s", b)
	}
	fast, slow := e.Channels[0], e.Channels[1]
	if fast.Name != "ch01" || fast.Unit != "g" || fast.Kind != signal.Vibration || fast.Rate != 2000 || len(fast.Pairs) != maxPairs || len(slow.Pairs) != 100 {
		t.Fatalf("%s of %d pairs and %s of %d", fast.Name, len(fast.Pairs), slow.Name, len(slow.Pairs))
	}
	for i, p := range fast.Pairs { // sixty a second
		n := float32(i / 60)
		switch {
		case i/60 == 5:
			if p != nil {
				t.Fatalf("pair %d is %v where no window is", i, *p)
			}
		case p == nil:
			t.Fatalf("no pair %d", i)
		case i%60 == 59:
			if *p != [2]float32{-100, 100} {
				t.Fatalf("pair %d is %v", i, *p)
			}
		case *p != [2]float32{n, n}:
			t.Fatalf("pair %d is %v, want %v", i, *p, n)
		}
	}
	for i, p := range slow.Pairs {
		if (p == nil) != (i/10 == 5) || p != nil && *p != [2]float32{float32(i / 10), float32(i / 10)} {
			t.Fatalf("slow pair %d is %v", i, p)
		}
	}
}

// Missing and infinite samples are in no pair, and JSON holds them all.
func TestEnvelopeOfMissingSamples(t *testing.T) {
	s, _ := open(t, 0)
	_, err := s.Write("A-K3ZQ7M2P-5", newCodec(t), facts, func(add func(*window.Window) error) error {
		w := second(4)
		for i := range w.Samples[0] {
			w.Samples[0][i] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 2}[i%4]
		}
		w.Samples[1] = slices.Repeat([]float32{float32(math.NaN())}, 10)
		return add(w)
	})
	if err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/api/evidence/A-K3ZQ7M2P-5", nil))
	var e envelope
	if err := json.Unmarshal(rec.Body.Bytes(), &e); err != nil {
		t.Fatal(err)
	}
	if p := e.Channels[0].Pairs[4*60+30]; p == nil || *p != [2]float32{2, 2} {
		t.Errorf("fast: %v", p)
	}
	if i := slices.IndexFunc(e.Channels[1].Pairs, func(p *[2]float32) bool { return p != nil }); i >= 0 {
		t.Errorf("slow: pair %d is there", i)
	}
}

// What cannot be kept leaves nothing behind, and says why.
func TestWriteFails(t *testing.T) {
	s, dir := open(t, 0)
	broken := errors.New("broken")
	for why, tc := range map[string]struct {
		name string
		each func(func(*window.Window) error) error
		want string
	}{
		"no window":         {"A-K3ZQ7M2P-5", seconds(), ErrNothing.Error()},
		"windows elsewhere": {"A-K3ZQ7M2P-5", seconds(-3, 40), ErrNothing.Error()},
		"the source breaks": {"A-K3ZQ7M2P-5", func(add func(*window.Window) error) error { add(second(1)); return broken }, "broken"},
		"a path":            {"../A-K3ZQ7M2P-5", seconds(1), "is not a name"},
		"no name":           {"", seconds(1), "is not a name"},
	} {
		_, err := s.Write(tc.name, newCodec(t), facts, tc.each)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", why, err)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write("A-K3ZQ7M2P-5", newCodec(t), facts, seconds(1)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is gone: %v", err)
	}
}

func TestOldestGo(t *testing.T) {
	s, dir := open(t, 2)
	if err := os.WriteFile(filepath.Join(dir, "mine.arrow"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		name := fmt.Sprintf("A-K3ZQ7M2P-%d", i)
		if _, err := s.Write(name, newCodec(t), facts, seconds(1)); err != nil {
			t.Fatal(err)
		}
		for _, ext := range []string{".arrow", ".json"} {
			at := origin.Add(time.Duration(i) * time.Hour)
			if err := os.Chtimes(filepath.Join(dir, name+ext), at, at); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
	}
	var names []string
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		names = append(names, f.Name())
	}
	want := []string{"A-K3ZQ7M2P-2.arrow", "A-K3ZQ7M2P-2.json", "A-K3ZQ7M2P-3.arrow", "A-K3ZQ7M2P-3.json", "mine.arrow"}
	if !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
	if now, most, err := s.Count(); now != 2 || most != 2 || err != nil {
		t.Errorf("%d of %d, %v", now, most, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(file, "below"), 1); err == nil {
		t.Error("a folder below a file")
	}
	if _, err := Open(t.TempDir(), -1); err == nil || !strings.Contains(err.Error(), "keep -1") {
		t.Errorf("keep −1: %v", err)
	}
}

// No path leads out of the folder, or to a file that is not evidence.
func TestHandler(t *testing.T) {
	s, dir := open(t, 0)
	k, err := s.Write("A-K3ZQ7M2P-5", newCodec(t), facts, seconds(1, 2))
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(filepath.Dir(dir), "secret.arrow")
	for path, text := range map[string]string{secret: "secret", filepath.Join(dir, "secret.json"): "secret", filepath.Join(dir, ".A-K3ZQ7M2P-5.arrow.1"): "secret"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "A-AAAAAAAA-1.arrow")
	if err := os.Symlink(secret, link); err != nil {
		t.Logf("no links here: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "A-BBBBBBBB-1.arrow"), 0o700); err != nil {
		t.Fatal(err)
	}
	get := func(method, path string) *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		r := httptest.NewRequest(method, "/", nil)
		r.URL.Path = path
		s.Handler().ServeHTTP(rec, r)
		return rec
	}
	rec := get("GET", "/evidence/A-K3ZQ7M2P-5.arrow")
	if rec.Code != http.StatusOK || int64(rec.Body.Len()) != k.Bytes || rec.Header().Get("Content-Type") != window.FileContentType {
		t.Errorf("%d, %d bytes, %v", rec.Code, rec.Body.Len(), rec.Header())
	}
	if rec := get("GET", "/api/evidence/A-K3ZQ7M2P-5"); rec.Code != http.StatusOK || !json.Valid(rec.Body.Bytes()) {
		t.Errorf("%d %.100s", rec.Code, rec.Body)
	}
	for _, path := range []string{
		"/evidence/../secret.arrow", "/evidence/..%2fsecret.arrow", "/evidence/..\\secret.arrow", "/evidence/secret.arrow", "/evidence/A-K3ZQ7M2P-5",
		"/evidence/A-K3ZQ7M2P-5.json", "/evidence/.A-K3ZQ7M2P-5.arrow.1", "/evidence/A-K3ZQ7M2P-6.arrow", "/evidence/A-AAAAAAAA-1.arrow",
		"/evidence/A-BBBBBBBB-1.arrow", "/evidence/" + secret, "/evidence/", "/evidence/A-K3ZQ7M2P-5.arrow/..", "/evidence/A-K3ZQ7M2P-5\x00.arrow",
		"/api/evidence/secret", "/api/evidence/../A-K3ZQ7M2P-5", "/api/evidence/", "/api/evidence/A-K3ZQ7M2P-5.json", "/api/evidence/A-K3ZQ7M2P-05",
	} {
		if rec := get("GET", path); rec.Code < 300 || strings.Contains(rec.Body.String(), "secret\n") || rec.Body.String() == "secret" {
			t.Errorf("%s: %d %.100s", path, rec.Code, rec.Body)
		}
	}
	if rec := get("POST", "/evidence/A-K3ZQ7M2P-5.arrow"); rec.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", rec.Code)
	}
}

// Only the user of the monitor may read waveforms, and no link leads out of the folder.
func TestEvidenceIsPrivate(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(outside, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "evidence")
	s, err := Open(dir, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"A-K3ZQ7M2P-5.arrow", "A-K3ZQ7M2P-5.json", "A-AAAAAAAA-1.arrow", "A-AAAAAAAA-1.json"} {
		if err := os.Symlink(outside, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	for _, path := range []string{"/evidence/A-AAAAAAAA-1.arrow", "/api/evidence/A-AAAAAAAA-1", "/api/evidence/A-AAAAAAAA-1/spectra?channel=ch01"} {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code == http.StatusOK || strings.Contains(w.Body.String(), "precious") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if _, err := s.Write("A-K3ZQ7M2P-5", newCodec(t), facts, seconds(1, 2, 3)); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(outside); err != nil || string(got) != "precious" {
		t.Errorf("the file outside holds %q, %v", got, err)
	}
	for _, name := range []string{"", "A-K3ZQ7M2P-5.arrow", "A-K3ZQ7M2P-5.json"} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%q: %v, %v", name, info.Mode(), err)
		}
	}
}

func FuzzName(f *testing.F) {
	for _, s := range []string{"A-K3ZQ7M2P-4711", "../A-K3ZQ7M2P-1", "A-K3ZQ7M2P-1/..", "A-K3ZQ7M2P-01", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if CheckName(s) != nil {
			return
		}
		if filepath.Base(s) != s || !filepath.IsLocal(s) || strings.ContainsAny(s, `/\.:`+"\x00") {
			t.Errorf("%q passes", s)
		}
		if u := URL("http://plant:9102/", s); u != "http://plant:9102/evidence/"+s+".arrow" {
			t.Errorf("%q", u)
		}
	})
}

// TestWriteFixtures writes evidence, and what its channels hold, for the pyarrow
// of make peers-formats.
func TestWriteFixtures(t *testing.T) {
	to := os.Getenv("FLANK_PEERS")
	if to == "" {
		t.Skip("set FLANK_PEERS to a folder for the fixtures; make peers-formats does")
	}
	s, err := Open(filepath.Join(to, "evidence"), 0)
	if err != nil {
		t.Fatal(err)
	}
	numbers := []int{1, 2, 3, 5, 6} // the fourth is missing
	if _, err := s.Write("A-K3ZQ7M2P-5", newCodec(t), facts, seconds(numbers...)); err != nil {
		t.Fatal(err)
	}
	var want struct {
		At       time.Time            `json:"at"`
		Starts   []time.Time          `json:"starts"`
		Channels map[string][]float32 `json:"channels"`
	}
	want.At, want.Channels = facts.At, make(map[string][]float32)
	for _, n := range numbers {
		w := second(n)
		want.Starts = append(want.Starts, w.Start)
		for i, name := range []string{"ch01", "torque"} {
			want.Channels[name] = append(want.Channels[name], w.Samples[i]...)
		}
	}
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, "evidence", "want.json"), b, 0o644); err != nil {
		t.Fatal(err)
	}
}
