package web

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"testing"
	"time"
)

// sine returns a window of the test layout: a tone of an amplitude on the fast channel.
func sine(seq uint64, amplitude float64) Window {
	w := testWindow(seq)
	w.Layout = twoChannels()
	w.Envelope, w.RMS = nil, nil
	fast := make([]float32, 20_000)
	for i := range fast {
		fast[i] = float32(amplitude * math.Sin(2*math.Pi*1000*float64(i)/20_000))
	}
	w.Samples = [][]float32{fast, {1}}
	return w
}

func spectrumOf(t *testing.T, h *Hub) (s struct {
	At       *time.Time
	Channels []struct {
		Name        string
		Frequencies []float64  `json:"frequencies_hz"`
		DB          []*float64 `json:"db"`
		UsualDB     []*float64 `json:"usual_db"`
	}
}, code int) {
	t.Helper()
	w := get(h, "GET", "/api/machines/"+url.PathEscape(testMachine)+"/spectrum")
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	return s, w.Code
}

// A page that looks at a machine gets the spectrum of the last window: a tone stands where it is,
// as high as it is, next to the tone of the windows that the tool's reference was made of.
func TestSpectrum(t *testing.T) {
	h := newTestHub()
	for seq := range uint64(6) {
		w := sine(seq, 1)
		w.Learning = true
		h.Window(w)
		h.awaitUsual()
	}
	if _, code := spectrumOf(t, h); code != http.StatusNotFound {
		t.Errorf("%d: no page looked at the machine, and its samples were kept", code)
	}
	h.Window(sine(6, 10)) // the request before counts as a look
	s, code := spectrumOf(t, h)
	if code != http.StatusOK || len(s.Channels) != 1 || s.Channels[0].Name != "ch01" || len(s.Channels[0].UsualDB) != len(s.Channels[0].DB) || !s.At.Equal(t0.Add(6*time.Second)) {
		t.Fatalf("%d %+v", code, s)
	}
	c := s.Channels[0]
	top := 0
	for i, db := range c.DB {
		if *db > *c.DB[top] {
			top = i
		}
		if i > 0 && c.Frequencies[i] <= c.Frequencies[i-1] {
			t.Errorf("frequencies %v and %v", c.Frequencies[i-1], c.Frequencies[i])
		}
	}
	if f := c.Frequencies[top]; f < 950 || f > 1050 {
		t.Errorf("the tone of 1000 Hz is at %v Hz", f)
	}
	if louder := *c.DB[top] - *c.UsualDB[top]; math.Abs(louder-20) > 0.2 {
		t.Errorf("a tone ten times as strong is %v dB above the usual one, want 20", louder)
	}
	if n := len(c.DB); n < 100 || n > spectrumBins || c.Frequencies[n-1] < 9000 {
		t.Errorf("%d bins up to %v Hz", n, c.Frequencies[n-1])
	}

	other := sine(7, 1)
	other.Tool = "T08"
	h.Window(other)
	if s, _ := spectrumOf(t, h); s.Channels[0].UsualDB != nil {
		t.Error("the usual spectrum of another tool")
	}
	h.now = func() time.Time { return t0.Add(lookFor) }
	h.Window(sine(8, 1))
	if h.machines[testMachine].spectra.samples != nil {
		t.Error("the samples stay although no page looks at the machine any more")
	}
}

// The usual spectrum of a tool is kept when it is complete, and is there again after a restart,
// but not for another tool, and not for another life of the same one.
func TestUsualIsKept(t *testing.T) {
	kept := map[string][]byte{}
	newHub := func() *Hub {
		return NewHub(Config{
			Layout:            twoChannels(),
			KeepUsualSpectrum: func(machine string, data []byte) error { kept[machine] = data; return nil },
			UsualSpectrum:     func(machine string) ([]byte, error) { return kept[machine], nil },
		})
	}
	usual := func(h *Hub) bool {
		t.Helper()
		h.beginWatch(testMachine)
		h.Window(sine(20, 10))
		s, code := spectrumOf(t, h)
		if code != http.StatusOK {
			t.Fatal(code)
		}
		return s.Channels[0].UsualDB != nil
	}
	h := newHub()
	for seq := range uint64(usualWindows) {
		if len(kept) > 0 {
			t.Fatalf("kept after %d windows", seq)
		}
		w := sine(seq, 1)
		w.Learning = true
		h.Window(w)
		h.awaitUsual()
	}
	if len(kept) != 1 || !usual(h) {
		t.Fatalf("%d are kept", len(kept))
	}
	if !usual(newHub()) {
		t.Error("it is gone after a restart")
	}
	for name, data := range kept {
		kept[name] = bytes.Replace(data, []byte(`"tool":"`), []byte(`"tool":"x`), 1)
	}
	if usual(newHub()) {
		t.Error("it is of another tool")
	}
	w := sine(21, 1)
	w.Learning = true
	h.Window(w)
	h.awaitUsual()
	if n := h.machines[testMachine].spectra.count; n != 1 {
		t.Errorf("a new life of the tool has the usual spectrum of %d windows", n)
	}
}

// The pause between two holes does not begin the usual spectrum again: the first windows of the reference
// make it, also where a hole is short, and where the control says that no tool is in.
func TestUsualOverPause(t *testing.T) {
	for name, pause := range map[string]func(*Window){
		"idle":    func(w *Window) { w.Idle = true },
		"no tool": func(w *Window) { w.Tool = "" },
		"both":    func(w *Window) { w.Tool, w.Idle = "", true },
	} {
		kept := 0
		h := NewHub(Config{Layout: twoChannels(), KeepUsualSpectrum: func(string, []byte) error { kept++; return nil }})
		for seq, learning := range []bool{false, true, true, true, false, true, true, false} {
			w := sine(uint64(seq), 1)
			if w.Learning = learning; !learning {
				pause(&w)
			}
			h.Window(w)
			h.awaitUsual()
		}
		if n := h.machines[testMachine].spectra.count; n != usualWindows || kept != 1 {
			t.Errorf("%s: the usual spectrum is of %d windows, kept %d times: want %d, once", name, n, kept, usualWindows)
		}
	}
}

// A sensor that is far off has a density that is not a number of JSON: its usual spectrum is not kept.
func TestUsualBeyondJSON(t *testing.T) {
	kept := 0
	h := NewHub(Config{Layout: twoChannels(), KeepUsualSpectrum: func(string, []byte) error { kept++; return nil }})
	for seq := range uint64(usualWindows) {
		w := sine(seq, 1e30)
		w.Learning = true
		h.Window(w)
		h.awaitUsual()
	}
	if n := h.machines[testMachine].spectra.count; n != usualWindows || kept != 0 {
		t.Errorf("%d windows make the usual spectrum, kept %d times", n, kept)
	}
}

// Waveforms are made and kept only while a page looks at the machine.
func TestWatched(t *testing.T) {
	h := newTestHub()
	envelope := func() int {
		h.Window(sine(1, 1))
		s, _ := page(h, testMachine)
		return len(s.Window.Envelope[0])
	}
	if h.Watched(testMachine) || envelope() != 0 {
		t.Error("no page looks, and there is an envelope")
	}
	h.beginWatch(testMachine)
	if !h.Watched(testMachine) || h.Watched(testLathe) || envelope() != 2*pairs {
		t.Error("a page looks, and there is no envelope")
	}
	s, _ := page(h, testMachine)
	if s.Window.Bare {
		t.Error("the page says that the gateway has the samples")
	}
	h.endWatch(testMachine)
	if !h.Watched(testMachine) {
		t.Error("the page cannot come back to what it had")
	}
	h.now = func() time.Time { return t0.Add(lookFor) }
	if h.Watched(testMachine) || envelope() != 0 {
		t.Error("no page looks any more, and there is an envelope")
	}
	h.beginWatch(testLathe)
	h.endWatch(testLathe)
	h.now = func() time.Time { return t0.Add(3 * lookFor) }
	h.beginWatch(testMachine)
	if len(h.watches) != 1 {
		t.Errorf("%d watches stay", len(h.watches))
	}
}

// awaitUsual returns when no usual spectrum is being computed.
func (h *Hub) awaitUsual() {
	h.learning.Lock()
	defer h.learning.Unlock()
}
