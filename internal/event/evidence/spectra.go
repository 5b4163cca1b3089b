package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// Bounds of a spectrogram. A frame of 1024 samples has bins of 78 Hz at 20 kHz.
const (
	maxColumns  = 240
	maxEnvelope = 64 << 20 // bytes of an envelope: a channel takes 16 kB
	mostBands   = 4096     // usual bands of a channel: the features have 10
	maxFrame    = 1024
	minFrame    = 4 * signal.MinSpectral
	mostSamples = 1 << 24 // of a channel in the span: 64 MB
)

// ErrNoSpectrum is returned for a channel that has too few samples a window for a
// spectrum.
var ErrNoSpectrum = errors.New("evidence: the channel has too few samples a window for a spectrum")

// spectra is what a plot of the spectra of one channel needs. Levels are spectral
// densities in dB: 10·log10 of the mean square of a bin divided by its width, of the
// channel's unit squared per Hz. A level is nil, null in JSON, where it is not known.
type spectra struct {
	Channel string    `json:"channel"`
	Unit    string    `json:"unit"`
	Rate    float64   `json:"rate"` // samples a second
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	At      time.Time `json:"at"` // end of the window that decided

	Hz    float64    `json:"hz"`    // width of a bin of Level
	Level []*float64 `json:"level"` // of the window that decided; Level[i] is at (i+1)·Hz; empty if that window is not there

	Usual []Band `json:"usual,omitempty"` // of the tool's reference, ascending; nil if it is not known

	RowHz   float64  `json:"row_hz"`  // height of a row of Columns
	Columns [][]*int `json:"columns"` // equal stretches of the span from From to To; row i is at (i+1)·RowHz; nil: no samples
}

// spectra returns the spectra of a channel of the evidence that has a name. It returns
// [window.ErrNoChannel], [ErrNoSpectrum], or the error of opening the file.
func (s *Store) Spectra(name, channel string) (*spectra, error) {
	e, err := s.span(name, channel)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenInRoot(s.dir, name+".arrow")
	if err != nil {
		return nil, fmt.Errorf("evidence: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("evidence: %w", err)
	}
	r, err := window.OpenWindows(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("evidence: %s.arrow: %w: %w: delete it with %s.json", name, err, window.ErrCorrupt, name)
	}
	defer func() { _ = r.Close() }() // it only drops what it holds
	out := &spectra{Channel: channel, From: e.From, To: e.To, At: e.At, Usual: e.Channels.bands}
	var span []float32 // all samples from From to To, NaN where none is there
	frame := 0         // samples of a window
	err = window.ReadChannel(r, channel, func(c signal.Channel, start time.Time, x []float32) error {
		if span == nil {
			n := math.Round(c.Rate * e.To.Sub(e.From).Seconds())
			if len(x) < signal.MinSpectral || !(n >= 1 && n <= mostSamples) {
				return ErrNoSpectrum
			}
			out.Unit, out.Rate = c.Unit, c.Rate
			span, frame = slices.Repeat([]float32{float32(math.NaN())}, int(n)), len(x)
		}
		length := time.Duration(float64(len(x)) / c.Rate * 1e9)
		if off := start.Add(length).Sub(e.At).Abs(); off < length/20 { // sensor clocks are not exact
			out.Level, out.Hz = level(x, c.Rate)
		}
		at := int(math.Round(start.Sub(e.From).Seconds() * c.Rate))
		for i, v := range x {
			if k := at + i; k >= 0 && k < len(span) {
				span[k] = v
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, window.ErrNoChannel) && !errors.Is(err, ErrNoSpectrum) {
		return nil, fmt.Errorf("evidence: %s.arrow: %w: delete it with %s.json", name, err, name)
	}
	if err != nil {
		return nil, err
	}
	out.columns(span, frame)
	return out, nil
}

// level returns the spectral density of x in dB, without the bin of the mean.
func level(x []float32, rate float64) (db []*float64, hz float64) {
	power, hz := signal.PowerSpectrum(x, rate)
	for _, p := range power[1:] {
		db = append(db, decibel(p/hz))
	}
	return db, hz
}

// decibel returns 10·log10 of a density to a tenth, or nil if that is not a number.
func decibel(density float64) *float64 {
	if !(density > 0) || math.IsInf(density, 0) {
		return nil
	}
	v := math.Round(100*math.Log10(density)) / 10
	return &v
}

// columns sets the spectrogram of all samples of the span. A frame is about as long as a
// column, and no longer than a window.
func (s *spectra) columns(span []float32, ofWindow int) {
	count := min(maxColumns, max(1, 4*len(span)/min(ofWindow, minFrame)))
	frame := minFrame
	for frame < min(maxFrame, len(span)/count) {
		frame *= 2
	}
	frame = min(frame, ofWindow, len(span))
	if frame < signal.MinSpectral {
		return
	}
	for c := range count {
		middle := (2*c + 1) * len(span) / (2 * count)
		at := max(0, min(len(span)-frame, middle-frame/2))
		x := span[at : at+frame]
		var column []*int
		if known(x) >= frame/2 {
			db, hz := level(x, s.Rate)
			s.RowHz = hz
			for _, v := range db {
				column = append(column, whole(v))
			}
		}
		s.Columns = append(s.Columns, column)
	}
}

func known(x []float32) (n int) {
	for _, v := range x {
		if v == v {
			n++
		}
	}
	return n
}

func whole(v *float64) *int {
	if v == nil {
		return nil
	}
	i := int(math.Round(*v))
	return &i
}

// span is what the spectra of a channel need of an envelope.
type span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	At   time.Time `json:"at"`

	Channels usualOf `json:"channels"`
}

// usualOf takes the usual bands of one channel from the list of all channels. It reads one
// channel at a time: an envelope may name millions, and none of the others is needed.
type usualOf struct {
	channel string
	bands   []Band
}

// UnmarshalJSON implements [json.Unmarshaler].
func (u *usualOf) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	switch t, err := d.Token(); {
	case err != nil || t == nil: // null
		return err
	case t != json.Delim('['):
		return errors.New("channels is not a list")
	}
	for d.More() {
		var c struct {
			Name  string          `json:"name"`
			Usual json.RawMessage `json:"usual"`
		}
		if err := d.Decode(&c); err != nil {
			return err
		}
		if c.Name != u.channel || len(c.Usual) == 0 {
			continue
		}
		if n := bytes.Count(c.Usual, []byte("{")); n > mostBands {
			return fmt.Errorf("channel %.64q has %d usual bands, more than %d", c.Name, n, mostBands)
		}
		if err := json.Unmarshal(c.Usual, &u.bands); err != nil {
			return err
		}
	}
	return nil
}

// span returns what the spectra of a channel need of the evidence that is kept under a name.
func (s *Store) span(name, channel string) (*span, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	f, err := os.OpenInRoot(s.dir, name+".json")
	if err != nil {
		return nil, fmt.Errorf("evidence: %w", err)
	}
	defer f.Close()
	e := span{Channels: usualOf{channel: channel}}
	if err := json.NewDecoder(io.LimitReader(f, maxEnvelope)).Decode(&e); err != nil {
		return nil, fmt.Errorf("evidence: %s.json: %w: the file is damaged, delete it with %s.arrow", name, err, name)
	}
	return &e, nil
}
