// Package evidence keeps the waveforms around alerts as files, so that the person who
// is called can see what was judged.
//
// The evidence of an alert has a name that is made of what people call the alarm
// and of the window that decided, "A-K3ZQ7M2P-4711". Under it a [Store] keeps two
// files: the windows as an Arrow file, and what a plot of them needs, an
// [envelope], as JSON. Both are there whole or not at all. The oldest go when
// there are more than the store keeps.
package evidence

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/pkg/window"
)

// DefaultKeep is how many alerts have their evidence kept by default:
// of the gun drill that is 1 GB.
const DefaultKeep = 100

var name = regexp.MustCompile(`^A-[A-Z2-7]{8}-(0|[1-9][0-9]{0,19})$`)

// Name returns the name of the evidence of an alert of the incident that the
// window seq decided.
func Name(incident string, seq uint64) string { return incident + "-" + strconv.FormatUint(seq, 10) }

// CheckName reports a text that is not the name of evidence. What passes is safe as
// part of a path.
func CheckName(s string) error {
	if !name.MatchString(s) {
		return fmt.Errorf("evidence: %.64q is not a name such as A-K3ZQ7M2P-4711", s)
	}
	return nil
}

// URL returns where the Arrow file of a name is served, below an address that may
// be empty.
func URL(base, name string) string {
	return strings.TrimRight(base, "/") + "/evidence/" + name + ".arrow"
}

// Facts is what a file says of itself.
type Facts struct {
	Alert    string
	Machine  string
	Incident string
	Model    string
	At       time.Time // end of the window that decided
	From, To time.Time // the span that is to be kept
	Usual    []Band    // of the tool's reference, as far as it is known
}

// Band is the power of a channel between two frequencies.
type Band struct {
	Channel string  `json:"-"`
	LowHz   float64 `json:"low_hz"`
	HighHz  float64 `json:"high_hz"`
	DB      float64 `json:"db"` // mean density, as levels of spectra
}

// Kept is what was kept.
type Kept struct {
	Windows int
	Bytes   int64
	SHA256  string        // hexadecimal
	Missing time.Duration // how much of the span no window covers
}

// ErrNothing is returned when there is no window to keep.
var ErrNothing = errors.New("all its windows are gone")

// Store is a folder of evidence. It is safe for concurrent use, but for two that
// write the same name.
type Store struct {
	dir  string
	keep int

	spectra sync.Mutex // held while spectra are computed for a page
}

// Open returns the store in dir, which it makes if it is not there, and reports a
// dir that cannot be written to. Keep is how many alerts have their evidence
// kept, at least one; 0 means DefaultKeep.
func Open(dir string, keep int) (*Store, error) {
	if keep < 0 {
		return nil, fmt.Errorf("evidence: keep %d: must be 1 or more, for example %d", keep, DefaultKeep)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("evidence: %w", err)
	}
	f, err := os.CreateTemp(dir, ".probe.*")
	if err != nil {
		return nil, fmt.Errorf("evidence: %w: let the monitor write there, or name another evidence.dir", err)
	}
	f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return nil, fmt.Errorf("evidence: %w", err)
	}
	return &Store{dir: dir, keep: cmp.Or(keep, DefaultKeep)}, nil
}

// Count returns how many alerts have their evidence kept now, and how many may.
func (s *Store) Count() (now, most int, err error) {
	all, err := s.list()
	return len(all), s.keep, err
}

// Write keeps the windows that each hands to add, in the order of their start,
// replacing what there was under the name. Windows that do not overlap the span are
// not written. Neither each nor Write keeps a window after add returned. An error of
// each is returned, and ErrNothing if it came with no window; then nothing changes.
func (s *Store) Write(name string, codec *window.Codec, f Facts, each func(add func(*window.Window) error) error) (Kept, error) {
	if err := CheckName(name); err != nil {
		return Kept{}, err
	}
	var k Kept
	sum := sha256.New()
	view := newEnvelope(codec.Layout(), f)
	covered := f.From
	path := filepath.Join(s.dir, name)
	err := config.WriteDataFileTo(path+".arrow", func(w io.Writer) error {
		size := new(counter)
		out := codec.NewFileWriter(io.MultiWriter(w, sum, size), f.metadata()...)
		err := each(func(w *window.Window) error {
			if !f.has(w) {
				return nil
			}
			covered = k.cover(covered, w)
			view.add(w)
			return out.Write(w)
		})
		if err == nil && k.Windows == 0 {
			err = ErrNothing
		}
		if err != nil {
			return err
		}
		err = out.Close()
		k.Bytes = int64(*size)
		return err
	})
	if err != nil {
		return Kept{}, fmt.Errorf("evidence: %w", err)
	}
	if rest := f.To.Sub(covered); rest > codec.Spec().Length/20 {
		k.Missing += rest
	}
	k.SHA256 = hex.EncodeToString(sum.Sum(nil))
	text, err := json.Marshal(view)
	if err != nil {
		panic("evidence: Write: " + err.Error()) // it holds finite numbers only
	}
	if err := config.WriteDataFile(path+".json", text); err != nil {
		os.Remove(path + ".arrow")
		return Kept{}, fmt.Errorf("evidence: %w", err)
	}
	return k, s.prune()
}

func (f Facts) metadata() [][2]string {
	when := func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
	return [][2]string{
		{"alert", f.Alert}, {"machine", f.Machine}, {"incident", f.Incident}, {"model", f.Model},
		{"at", when(f.At)}, {"from", when(f.From)}, {"to", when(f.To)},
	}
}

type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

type kept struct {
	name string
	at   time.Time
}

// list returns what is kept, the newest first.
func (s *Store) list() (all []kept, err error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("evidence: %w", err)
	}
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), ".arrow")
		if !ok || !name.MatchString(base) {
			continue // not ours
		}
		if info, err := e.Info(); err == nil { // else it went meanwhile
			all = append(all, kept{base, info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b kept) int { return cmp.Or(b.at.Compare(a.at), strings.Compare(a.name, b.name)) })
	return all, nil
}

// prune removes the oldest beyond what is kept.
func (s *Store) prune() error {
	all, err := s.list()
	if err != nil {
		return err
	}
	for i := s.keep; i < len(all); i++ {
		for _, ext := range []string{".json", ".arrow"} {
			if err := os.Remove(filepath.Join(s.dir, all[i].name+ext)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("evidence: %w", err)
			}
		}
	}
	return nil
}

// cover counts a window, and what is missing before it. It returns until when windows are there.
func (k *Kept) cover(covered time.Time, w *window.Window) time.Time {
	k.Windows++
	if gap := w.Start.Sub(covered); gap > w.Length/20 { // sensor clocks are not exact
		k.Missing += gap
	}
	if w.End().After(covered) {
		return w.End()
	}
	return covered
}

// has reports whether a part of the window is in the span.
func (f *Facts) has(w *window.Window) bool { return w.End().After(f.From) && w.Start.Before(f.To) }
