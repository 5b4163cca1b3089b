package web

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
)

// spectrumJSON is the answer of /api/machines/{m}/spectrum.
type spectrumJSON struct {
	At       *time.Time        `json:"at,omitempty"` // start of the window
	Channels []channelSpectrum `json:"channels"`     // those that have a spectrum
}

// channelSpectrum is the power spectral density of a channel, in dB relative to 1 unit²/Hz.
type channelSpectrum struct {
	Name        string `json:"name"`
	Unit        string `json:"unit"`
	Frequencies floats `json:"frequencies_hz"` // of the middle of each bin
	DB          floats `json:"db"`             // null: nothing was measured there
	UsualDB     floats `json:"usual_db"`       // of the windows that the tool's reference was made of; null: they are not known
}

// Bounds of spectra.
const (
	spectrumBins = 160
	usualWindows = 4 // that the usual spectrum is the mean of
)

// spectra are the samples of the last window of a machine that pages look at, and the usual
// spectrum of the tool that is in.
type spectra struct {
	at      time.Time
	samples [][]float32

	tool     string
	learning bool        // the last window that says so was one that the tool's reference is made of
	asked    bool        // for what was kept of the usual spectrum
	usual    [][]float32 // density of each bin by channel, the sum of count windows
	count    int         // 0: the usual spectrum is not known
}

// hasSamples reports whether w has samples of every channel of its layout.
func (w *Window) hasSamples() bool {
	return len(w.Samples) > 0 && w.Layout != nil && len(w.Samples) == len(w.Layout.Channels())
}

// take looks at a window, of which it keeps the samples if a page looks at the machine.
func (s *spectra) take(w *Window, watched bool) {
	between := w.Tool == "" && !w.Learning && s.tool != ""         // two cycles: the tool stays in
	if !between && s.tool != w.Tool || w.Learning && !s.learning { // another tool, or another life of it
		s.tool, s.usual, s.count, s.asked = w.Tool, nil, 0, w.Learning
	}
	if !w.Idle && !between {
		s.learning = w.Learning
	}
	if !watched || !w.hasSamples() {
		return
	}
	if len(s.samples) != len(w.Samples) {
		s.samples = make([][]float32, len(w.Samples))
	}
	s.at = w.Start
	for i, x := range w.Samples {
		s.samples[i] = append(s.samples[i][:0], x...)
	}
}

// learn adds a window of a tool's reference to the usual spectrum of the tool, of which the
// first windows make it. That takes some milliseconds for each channel, so it happens apart from
// the caller, for one machine at a time: a window that comes meanwhile is left out.
func (h *Hub) learn(w *Window) {
	if !h.wantsToLearn(w) || !h.learning.TryLock() {
		return
	}
	samples, channels, machine, tool := clone(w.Samples), w.Layout.Channels(), w.Machine, w.Tool
	go func() {
		defer h.learning.Unlock()
		density := make([][]float32, len(channels))
		for i, c := range channels {
			_, density[i] = binned(samples[i], c)
		}
		h.mu.Lock()
		var kept []byte
		if m := h.machines[machine]; m != nil && m.spectra.tool == tool {
			if m.spectra.add(density); m.spectra.count == usualWindows {
				kept = m.spectra.pack()
			}
		}
		h.mu.Unlock()
		if kept != nil && h.keep != nil {
			_ = h.keep(machine, kept) // a disk that is full is a problem of the history, which says so
		}
	}()
}

// keptUsual is the usual spectrum of a tool as it is kept.
type keptUsual struct {
	Tool  string      `json:"tool"`
	Count int         `json:"count"`
	Usual [][]float32 `json:"usual"`
}

// pack returns the usual spectrum, to be kept; nil if a density is beyond float32, as of a sensor that is far off.
func (s *spectra) pack() []byte {
	b, err := json.Marshal(keptUsual{s.tool, s.count, s.usual})
	if err != nil {
		return nil
	}
	return b
}

// unpack takes a usual spectrum that was kept, if it is of the tool that is in.
func (s *spectra) unpack(data []byte) {
	var k keptUsual
	if s.count == 0 && json.Unmarshal(data, &k) == nil && k.Tool == s.tool && k.Count > 0 {
		s.usual, s.count = k.Usual, k.Count
	}
}

// recallUsual reads what was kept of the usual spectrum of a machine's tool, once for a tool.
func (h *Hub) recallUsual(name string) {
	h.mu.Lock()
	m := h.machines[name]
	ask := h.recall != nil && m != nil && m.spectra.samples != nil && m.spectra.count == 0 && !m.spectra.asked
	if ask {
		m.spectra.asked = true
	}
	h.mu.Unlock()
	if !ask {
		return
	}
	data, err := h.recall(name)
	if err != nil || data == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	m.spectra.unpack(data)
}

// wantsToLearn reports whether the usual spectrum of the tool in a window needs more windows.
func (h *Hub) wantsToLearn(w *Window) bool {
	if !w.Learning || !w.hasSamples() {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.machines[w.Machine]
	return m != nil && m.spectra.tool == w.Tool && m.spectra.count < usualWindows
}

// add adds the densities of a window to the usual spectrum.
func (s *spectra) add(density [][]float32) {
	if !slices.EqualFunc(s.usual, density, func(x, y []float32) bool { return len(x) == len(y) }) {
		s.usual, s.count = density, 1
		return
	}
	for i := range density {
		for k, p := range density[i] {
			s.usual[i][k] += p
		}
	}
	s.count++
}

// binned returns the mean power density of bins that are spread evenly over the logarithm of
// the frequency, and the frequencies in their middles; nil if the channel has no spectrum.
func binned(x []float32, c signal.Channel) (frequencies, density []float32) {
	power, hz := signal.PowerSpectrum(x, c.Rate)
	if len(power) < 3 {
		return nil, nil
	}
	low, high := math.Log(0.5), math.Log(float64(len(power))-0.5)
	k := 1
	for b := range spectrumBins {
		end := math.Exp(low + (high-low)*float64(b+1)/spectrumBins)
		var sum, middle float64
		n := 0
		for ; k < len(power) && float64(k) <= end; k++ {
			sum, middle, n = sum+power[k]/hz, middle+float64(k), n+1
		}
		if n > 0 { // at low frequencies bins lie apart
			frequencies = append(frequencies, float32(middle/float64(n)*hz))
			density = append(density, float32(sum/float64(n)))
		}
	}
	return frequencies, density
}

// decibels returns densities, each of them the sum of n, in dB.
func decibels(density []float32, n int) floats {
	db := make(floats, len(density))
	for i, p := range density {
		db[i] = float32(math.Inf(-1))
		if p > 0 {
			db[i] = float32(math.Round(100*math.Log10(float64(p)/float64(n))) / 10)
		}
	}
	return db
}

func (x *server) getSpectrum(r *http.Request) (any, *apiError) {
	name := r.PathValue("m")
	x.hub.recallUsual(name)
	channels, s, bad := x.spectraOf(name)
	if bad != nil {
		return nil, bad
	}
	j := spectrumJSON{At: known(s.at), Channels: []channelSpectrum{}}
	for i, c := range channels {
		frequencies, density := binned(s.samples[i], c)
		if density == nil {
			continue
		}
		one := channelSpectrum{Name: c.Name, Unit: c.Unit, Frequencies: frequencies, DB: decibels(density, 1)}
		if i < len(s.usual) && len(s.usual[i]) == len(density) {
			one.UsualDB = decibels(s.usual[i], s.count)
		}
		j.Channels = append(j.Channels, one)
	}
	return j, nil
}

// spectraOf returns the channels of a machine and a copy of what its spectra are made of.
func (x *server) spectraOf(name string) ([]signal.Channel, spectra, *apiError) {
	x.hub.mu.Lock()
	defer x.hub.mu.Unlock()
	m := x.hub.machines[name]
	if m == nil {
		return nil, spectra{}, unknownMachine(name)
	}
	x.hub.look(name)
	s := m.spectra
	if m.layout == nil || len(s.samples) != len(m.layout.Channels) {
		why, remedy := "no window of "+name+" has come since a page looks at it", "ask again after the next window"
		if m.bare {
			why, remedy = "the gateway of "+name+" keeps its samples", "the spectrum needs samples: set mode: windows in ingest.yaml"
		}
		return nil, spectra{}, &apiError{http.StatusNotFound, fmt.Sprintf("the spectrum of %.200q is not there: %s", name, why), remedy}
	}
	s.samples, s.usual = clone(s.samples), clone(s.usual)
	return m.layout.Channels, s, nil
}

func clone(all [][]float32) [][]float32 {
	copied := make([][]float32, len(all))
	for i, x := range all {
		copied[i] = slices.Clone(x)
	}
	return copied
}
