package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model/unknown"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
	"github.com/flank-tcm/flank/pkg/trend"
	"github.com/flank-tcm/flank/pkg/window"
)

// The file, see schemas/model.md:
//
//	magic "FLANKMDL" | version uint32 | sections uint32
//	section: name length uint8 | name | length uint64 | bytes
//	SHA-256 of all that is before
//
// Numbers are little endian. Sections come in a fixed order.
const (
	magic        = "FLANKMDL"
	version      = 3 // of the newest, which is written if there is need of it
	maxModelSize = 128 << 20
	maxManifest  = 8 << 20 // bytes of a section of JSON, which takes some ten times as much memory
	maxGolden    = 4096    // golden vectors; each takes memory of its own

	sectionManifest   = "manifest"   // JSON, see manifest
	sectionClassifier = "classifier" // classify.Classifier in its binary form
	sectionGolden     = "golden"     // rows uint32, features uint32, classes uint32, then float32 and float64

	// Left out if there is nothing to say.
	sectionWear       = "wear"           // JSON, trend.Model
	sectionGoldenWear = "golden-wear"    // as golden, with the reference after the features if the estimate takes one, and one number for the posterior
	sectionConformal  = "conformal"      // unknown.Conformal in its binary form
	sectionNovelty    = "novelty"        // unknown.Novelty in its binary form
	sectionDistances  = "golden-novelty" // rows uint32, then float64
	sectionDrift      = "drift"          // JSON, Drift
	sectionHeldOut    = "held-out"       // HeldOut in its binary form
)

// manifest is the part of a model that people may read.
type manifest struct {
	Layout struct {
		Name        string           `json:"name"`
		Fingerprint string           `json:"fingerprint"`
		Channels    []signal.Channel `json:"channels"`
	} `json:"layout"`
	Recording *recordingSection `json:"recording,omitempty"`
	Window    struct {
		LengthNS time.Duration `json:"length_ns"`
		HopNS    time.Duration `json:"hop_ns"`
	} `json:"window"`
	Features     signal.FeatureSpec `json:"features"`
	FeatureNames []string           `json:"feature_names"`
	Reference    ReferenceSpec      `json:"reference"`
	Cycle        *cycle.Model       `json:"cycle,omitempty"`
	Gate         *Gate              `json:"gate,omitempty"`
	Usual        [][]string         `json:"usual_quality"`
	Label        LabelRule          `json:"label"`
	ByWear       *WearVerdict       `json:"verdict_by_wear,omitempty"`
	FirstDay     *FirstDay          `json:"first_day,omitempty"`
	Provenance   Provenance         `json:"provenance"`
	Scores       json.RawMessage    `json:"scores,omitempty"`
}

// version returns the version of the format that m is written in: 2 with conformal sets or
// novelty, which readers of version 1 would take for damage, or if the verdict is by wear, which they would not notice; 3 without
// a classifier.
func (m *Model) version() uint32 {
	if m.FirstDay != nil {
		return 3
	}
	if m.ByWear != nil || m.Conformal != nil || m.Novelty != nil {
		return 2
	}
	return 1
}

// errOther is returned for a model that another release wrote.
var errOther = errors.New("model of another release")

// errFileDamaged is returned for a file that is not a whole model.
var errFileDamaged = errors.New("damaged model")

// Encode returns the bytes of the model's file and sets its ID. Equal models
// have equal bytes. It reports a model that contradicts itself.
func (m *Model) Encode() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if err := m.verify(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	names := m.NewJudge().FeatureNames()
	text, err := m.manifest(names)
	if err != nil {
		return nil, fmt.Errorf("model: manifest: %w", err)
	}
	w := sectionWriter{b: append([]byte(magic), 0, 0, 0, 0, 0, 0, 0, 0)}
	binary.LittleEndian.PutUint32(w.b[8:], m.version())
	w.add(sectionManifest, text)
	if m.Classifier != nil {
		class, err := m.Classifier.AppendBinary(nil)
		if err != nil {
			return nil, fmt.Errorf("model: %w", err)
		}
		w.add(sectionClassifier, class)
	}
	w.add(sectionGolden, appendGolden(nil, m.Golden, len(names), m.Classes()))
	if err := m.writeOptional(&w, len(names)); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	binary.LittleEndian.PutUint32(w.b[12:], w.sections)
	sum := sha256.Sum256(w.b)
	if id := idOf(m, sum); m.id != id { // a model in use is only read
		m.id = id
	}
	return append(w.b, sum[:]...), nil
}

// manifest returns the text of the manifest of a model of features of the given names.
func (m *Model) manifest(names []string) ([]byte, error) {
	var f manifest
	f.Layout.Name, f.Layout.Fingerprint, f.Layout.Channels = m.Layout.Name(), m.Layout.Fingerprint(), m.Layout.Channels()
	f.Recording = toRecordingSection(m.Recording)
	f.Window.LengthNS, f.Window.HopNS = m.Window.Length, m.Window.Hop
	f.Features, f.FeatureNames = m.Features, names
	f.Reference, f.Cycle, f.Gate, f.Label, f.ByWear, f.FirstDay, f.Provenance, f.Scores = m.Reference, m.Cycle, m.Gate, m.Label, m.ByWear, m.FirstDay, m.Provenance, m.Scores
	for _, q := range m.Usual {
		f.Usual = append(f.Usual, q.Names())
	}
	return json.MarshalIndent(f, "", " ")
}

func (m *Model) writeGoldenWear(w *sectionWriter, features int) {
	if m.Wear.Reference {
		features *= 2
	}
	var rows []Golden
	for _, g := range m.GoldenWear {
		rows = append(rows, Golden{slices.Concat(g.Features, g.Reference), []float64{g.Root}})
	}
	w.add(sectionGoldenWear, appendGolden(nil, rows, features, 1))
}

// writeOptional writes the sections of what m has beyond the classifier.
func (m *Model) writeOptional(w *sectionWriter, features int) error {
	if m.Wear != nil {
		text, err := json.Marshal(m.Wear)
		if err != nil {
			return fmt.Errorf("wear: %w", err)
		}
		w.add(sectionWear, text)
	}
	if len(m.GoldenWear) > 0 {
		m.writeGoldenWear(w, features)
	}
	if m.Conformal != nil {
		b, err := m.Conformal.AppendBinary(nil)
		if err != nil {
			return err
		}
		w.add(sectionConformal, b)
	}
	if m.Novelty != nil {
		b, err := m.Novelty.AppendBinary(nil)
		if err != nil {
			return err
		}
		w.add(sectionNovelty, b)
		w.add(sectionDistances, appended(binary.LittleEndian.AppendUint32(nil, uint32(len(m.Distances))), m.Distances))
	}
	if m.Drift != nil {
		text, err := json.Marshal(m.Drift)
		if err != nil {
			return fmt.Errorf("drift: %w", err)
		}
		w.add(sectionDrift, text)
	}
	if len(m.HeldOut) > 0 {
		w.add(sectionHeldOut, m.HeldOut)
	}
	return nil
}

// sectionWriter appends sections to a file and counts them.
type sectionWriter struct {
	b        []byte
	sections uint32
}

func (w *sectionWriter) add(name string, data []byte) {
	w.b = append(w.b, byte(len(name)))
	w.b = append(w.b, name...)
	w.b = binary.LittleEndian.AppendUint64(w.b, uint64(len(data)))
	w.b = append(w.b, data...)
	w.sections++
}

// idOf returns the id of the file of a model, with the checksum.
func idOf(m *Model, sum [sha256.Size]byte) string {
	kind := "ecs-dbn-"
	if m.FirstDay != nil {
		kind = "first-day-"
	}
	return kind + hex.EncodeToString(sum[:6])
}

func appendGolden(b []byte, rows []Golden, features, classes int) []byte {
	for _, n := range []int{len(rows), features, classes} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	for _, g := range rows {
		b = appended(appended(b, g.Features), g.Posterior)
	}
	return b
}

// Decode reads a model from the bytes of its file. It returns errFileDamaged for
// bytes that are not a whole file, and errGolden if the model does not
// compute here what its trainer computed. Nothing in the file is trusted before
// its checksum holds.
func Decode(b []byte) (*Model, error) {
	if len(b) < len(magic) || string(b[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: it does not begin with %q, so it is not a Flank model", errFileDamaged, magic)
	}
	if len(b) < len(magic)+8+sha256.Size {
		return nil, fmt.Errorf("%w: only %d bytes", errFileDamaged, len(b))
	}
	body := b[:len(b)-sha256.Size]
	sum := sha256.Sum256(body)
	if !bytes.Equal(sum[:], b[len(body):]) {
		return nil, fmt.Errorf("%w: its checksum does not hold", errFileDamaged)
	}
	if v := binary.LittleEndian.Uint32(body[8:]); v < 1 || v > version {
		return nil, fmt.Errorf("%w: format version %d, this program reads 1 to %d: use the Flank release that made it", errOther, v, version)
	}
	sections, err := readSections(body[16:], binary.LittleEndian.Uint32(body[12:]))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errFileDamaged, err)
	}
	m, err := fromSections(sections)
	if err != nil {
		return nil, err
	}
	m.id = idOf(m, sum)
	return m, nil
}

func readSections(b []byte, n uint32) (map[string][]byte, error) {
	sections := make(map[string][]byte)
	for range min(n, 16) {
		if len(b) < 1 || len(b) < 1+int(b[0])+8 {
			return nil, errors.New("a section is cut off")
		}
		end := 1 + int(b[0]) // a byte would overflow
		name := string(b[1:end])
		b = b[end:]
		size := binary.LittleEndian.Uint64(b)
		if b = b[8:]; size > uint64(len(b)) {
			return nil, fmt.Errorf("section %q is cut off", name)
		}
		sections[name] = b[:size]
		b = b[size:]
	}
	return sections, nil
}

func fromSections(sections map[string][]byte) (*Model, error) {
	var f manifest
	for _, name := range []string{sectionManifest, sectionWear, sectionDrift} {
		if n := len(sections[name]); n > maxManifest {
			return nil, fmt.Errorf("%w: section %s has %d bytes, at most %d are read", errFileDamaged, name, n, maxManifest)
		}
	}
	if err := json.Unmarshal(sections[sectionManifest], &f); err != nil {
		return nil, fmt.Errorf("%w: manifest: %w", errFileDamaged, err)
	}
	layout, err := signal.NewLayout(f.Layout.Name, f.Layout.Channels)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errFileDamaged, err)
	}
	if layout.Fingerprint() != f.Layout.Fingerprint {
		return nil, fmt.Errorf("%w: layout has fingerprint %s, the file says %s", errFileDamaged, layout.Fingerprint(), f.Layout.Fingerprint)
	}
	spec := window.Spec{Length: f.Window.LengthNS, Hop: f.Window.HopNS}
	if err := spec.Check(layout); err != nil {
		return nil, fmt.Errorf("%w: %w", errFileDamaged, err)
	}
	m := &Model{
		Layout: layout, Recording: f.Recording.recording(), Window: spec, Features: f.Features, Reference: f.Reference, Cycle: f.Cycle, Gate: f.Gate,
		Label: f.Label, ByWear: f.ByWear, FirstDay: f.FirstDay, Provenance: f.Provenance, Scores: f.Scores,
	}
	for _, names := range f.Usual {
		q, err := signal.ParseQuality(names)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errFileDamaged, err)
		}
		m.Usual = append(m.Usual, q)
	}
	if b, ok := sections[sectionClassifier]; ok || m.FirstDay == nil {
		m.Classifier = new(classify.Classifier)
		if err := m.Classifier.UnmarshalBinary(b); err != nil {
			return nil, fmt.Errorf("%w: %w", errFileDamaged, err)
		}
	}
	if m.Golden, err = readGolden(sections[sectionGolden]); err != nil {
		return nil, fmt.Errorf("%w: %w", errFileDamaged, err)
	}
	if text, ok := sections[sectionWear]; ok {
		m.Wear = new(trend.Model)
		if err := json.Unmarshal(text, m.Wear); err != nil {
			return nil, fmt.Errorf("%w: wear: %w", errFileDamaged, err)
		}
	}
	if err := m.readUnknown(sections); err != nil {
		return nil, fmt.Errorf("%w: %w", errFileDamaged, err)
	}
	m.HeldOut = bytes.Clone(sections[sectionHeldOut]) // and not the bytes of the whole file
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", errFileDamaged, err)
	}
	return m, m.verify()
}

// readUnknown reads the optional sections that came with the third verdict.
func (m *Model) readUnknown(sections map[string][]byte) error {
	if b, ok := sections[sectionGoldenWear]; ok {
		rows, err := readGolden(b)
		if err != nil {
			return err
		}
		for _, g := range rows {
			if len(g.Posterior) != 1 {
				return fmt.Errorf("golden vectors of wear have %d numbers, expected one", len(g.Posterior))
			}
			v := GoldenWear{Features: g.Features, Root: g.Posterior[0]}
			if m.Wear != nil && m.Wear.Reference { // the reference follows the features
				half := len(g.Features) / 2
				v.Features, v.Reference = g.Features[:half:half], g.Features[half:]
			}
			m.GoldenWear = append(m.GoldenWear, v)
		}
	}
	if b, ok := sections[sectionConformal]; ok {
		m.Conformal = new(unknown.Conformal)
		if err := m.Conformal.UnmarshalBinary(b); err != nil {
			return err
		}
	}
	if b, ok := sections[sectionNovelty]; ok {
		m.Novelty = new(unknown.Novelty)
		if err := m.Novelty.UnmarshalBinary(b); err != nil {
			return err
		}
	}
	if b, ok := sections[sectionDistances]; ok {
		if len(b) < 4 || uint64(len(b)-4) != 8*uint64(binary.LittleEndian.Uint32(b)) {
			return errors.New("golden distances are cut off")
		}
		m.Distances = make([]float64, len(b[4:])/8)
		taken(b[4:], m.Distances)
	}
	if b, ok := sections[sectionDrift]; ok {
		m.Drift = new(Drift)
		if err := json.Unmarshal(b, m.Drift); err != nil {
			return fmt.Errorf("drift: %w", err)
		}
	}
	return nil
}

func readGolden(b []byte) ([]Golden, error) {
	if len(b) < 12 {
		return nil, errors.New("golden vectors are cut off")
	}
	rows, features, classes := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
	b = b[12:]
	row := 4*uint64(features) + 8*uint64(classes)
	if row == 0 || uint64(len(b))/row != uint64(rows) || uint64(len(b))%row != 0 {
		return nil, errors.New("golden vectors are cut off")
	}
	if rows > maxGolden {
		return nil, fmt.Errorf("%d golden vectors, at most %d are read", rows, maxGolden)
	}
	golden := make([]Golden, rows)
	for i := range golden {
		g := Golden{Features: make([]float32, features), Posterior: make([]float64, classes)}
		b = taken(taken(b, g.Features), g.Posterior)
		golden[i] = g
	}
	return golden, nil
}

// Save writes the model to path and sets its ID. The file appears whole or not
// at all: it is written under another name, synced and renamed.
func (m *Model) Save(path string) error {
	b, err := m.Encode()
	if err != nil {
		return err
	}
	if err := config.WriteDataFile(path, b); err != nil {
		return fmt.Errorf("model: save: %w", err)
	}
	return nil
}

// Load reads the model file at path. See Decode for its errors.
func Load(path string) (*Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("model: %w: train one with `trainer fit --model %s`, or of the simulated drill with `trainer demo --model %[2]s`", err, path)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if info.Size() > maxModelSize {
		return nil, fmt.Errorf("model: %s: %w: more than %d MiB: copy the file again or train a new model", path, errFileDamaged, maxModelSize>>20)
	}
	b := make([]byte, info.Size())
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, fmt.Errorf("model: %s: %w", path, err)
	}
	m, err := Decode(b)
	if errors.Is(err, errOther) {
		return nil, fmt.Errorf("model: %s: %w", path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("model: %s: %w: copy the file again or train a new model", path, err)
	}
	return m, nil
}
