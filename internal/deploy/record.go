package deploy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
)

// CloudEvents types of the records.
const (
	modelType  = "io.tcm.model.v1"
	partType   = "io.tcm.model-part.v1"
	changeType = "io.tcm.deployment.v1"
	curveType  = "io.tcm.model-curve.v1"
)

// Bounds of records.
const (
	maxRecord = 64 << 10  // bytes of a manifest or a change
	partSize  = 768 << 10 // bytes of a model in one message: below the largest batch that Kafka takes by default
	maxModel  = 64 << 20  // bytes of a model
	maxText   = 1000      // bytes of by and note
	maxShadow = 8         // shadows of a deployment
	maxPast   = 10        // champions that a deployment remembers for rollback
	maxNumber = 1 << 53   // of a change: JSON carries it exactly
)

// Keys of records.
const (
	modelPrefix  = "model/"
	changePrefix = "change/"
	curvePrefix  = "curve/"
)

// MaxCurve is the most bytes of a model's curve.
const MaxCurve = maxRecord

var (
	modelIDs  = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)
	changeIDs = regexp.MustCompile(`^([1-9][0-9]{0,15})-[0-9a-f]{8}$`)
	layoutIDs = regexp.MustCompile(`^[0-9a-f]{16}$`)
	partNames = regexp.MustCompile(`^[0-9]{4}$`)
	hexSums   = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// Manifest describes a published model. The model's file lies in parts, in messages of
// their own. The manifest is written after them and signs them by their checksum, so a
// model that is half written does not exist.
type Manifest struct {
	ID     string         `json:"id"`
	Size   int64          `json:"size"`   // of the file, in bytes
	SHA256 string         `json:"sha256"` // of the file
	Parts  int            `json:"parts"`
	Layout ManifestLayout `json:"layout"`
	Title  string         `json:"title"` // the model in a line
	At     time.Time      `json:"at"`    // when it was published
	By     string         `json:"by"`
	Note   string         `json:"note,omitempty"`
}

// ManifestLayout is the layout of a model's windows.
type ManifestLayout struct {
	Name        string `json:"name"`
	Fingerprint string `json:"fingerprint"`
}

// Action says what a change did.
type Action string

// The actions.
const (
	promoted   Action = "promote"     // a new champion, or other alarm settings
	shadowed   Action = "shadow"      // a new shadow
	unshadowed Action = "drop-shadow" // a shadow's trial ended early
	rolledBack Action = "rollback"    // the champion before
	Retired    Action = "retire"      // the deployment is over
)

// Change is a record of a deployment, as it is from this change on. Changes of all
// deployments are numbered together. Of two with one number the first in the topic counts:
// its writer has won, and the other one tries again. The change with the highest number
// is what a deployment is now, and the ones before are its history.
type Change struct {
	Number   uint64        `json:"number"`
	Action   Action        `json:"action"`
	For      string        `json:"for"`    // glob of machines
	Layout   string        `json:"layout"` // fingerprint
	Champion string        `json:"champion,omitempty"`
	Shadows  []Trial       `json:"shadows,omitempty"`
	Alarm    *AlarmRecord  `json:"alarm,omitempty"` // nil: as the monitor is configured
	Now      bool          `json:"now,omitempty"`   // swap at once, not at the next tool change
	Since    time.Time     `json:"since,omitzero"`  // when the champion became champion
	Previous []PastVersion `json:"previous,omitempty"`
	First    uint64        `json:"first"` // number of the change that began the deployment
	At       time.Time     `json:"at"`
	By       string        `json:"by"`
	Note     string        `json:"note,omitempty"`
}

// Trial is a model that judges as a shadow until a time.
type Trial struct {
	Model string    `json:"model"`
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
}

// PastVersion is a champion before, with its alarm settings.
type PastVersion struct {
	Champion string       `json:"champion"`
	Alarm    *AlarmRecord `json:"alarm,omitempty"`
	Since    time.Time    `json:"since"`
}

// AlarmRecord is alarm.Settings as a record has them.
type AlarmRecord struct {
	K          int           `json:"k"`
	N          int           `json:"n"`
	Clear      int           `json:"clear"`
	OnHoldNS   time.Duration `json:"on_hold_ns"`
	OffHoldNS  time.Duration `json:"off_hold_ns"`
	Latch      bool          `json:"latch"`
	MaxShelfNS time.Duration `json:"max_shelf_ns"`
	ReAlarmNS  time.Duration `json:"re_alarm_ns,omitempty"` // 0: the default
	Threshold  float64       `json:"threshold"`
}

// RecordOf returns s as a record has it.
func RecordOf(s alarm.Settings) *AlarmRecord {
	return &AlarmRecord{s.K, s.N, s.Clear, s.OnHold, s.OffHold, s.Latch, s.MaxShelf, s.ReAlarm, s.Threshold}
}

// Settings returns the settings; nil for nil.
func (r *AlarmRecord) Settings() *alarm.Settings {
	if r == nil {
		return nil
	}
	return &alarm.Settings{
		K: r.K, N: r.N, Clear: r.Clear, OnHold: r.OnHoldNS, OffHold: r.OffHoldNS, Latch: r.Latch, MaxShelf: r.MaxShelfNS, ReAlarm: r.ReAlarmNS, Threshold: r.Threshold,
	}
}

// target is what a change is about. There is one deployment for each.
type target struct{ glob, layout string }

func (c *Change) target() target { return target{c.For, c.Layout} }

// check reports what is wrong with a change by itself.
func (c *Change) check() error {
	if _, err := ParseGlob(c.For); err != nil {
		return fmt.Errorf("for: %w", err)
	}
	err := cmp.Or(
		config.Wrong(c.Number < 1 || c.Number > maxNumber, "number %d: must be from 1 to %d", c.Number, uint64(maxNumber)),
		config.Wrong(c.First < 1 || c.First > c.Number, "first %d: must be from 1 to the number of the change, %d", c.First, c.Number),
		config.Wrong(!layoutIDs.MatchString(c.Layout), "layout %s: must be a fingerprint of 16 hexadecimal digits", printable(c.Layout)),
		config.Wrong(len(c.By) > maxText || len(c.Note) > maxText, "by and note: at most %d bytes each", maxText),
		config.Wrong(len(c.Shadows) > maxShadow, "%d shadows: at most %d judge at the same time", len(c.Shadows), maxShadow),
		config.Wrong(len(c.Previous) > maxPast, "%d champions before: at most %d are remembered", len(c.Previous), maxPast),
		config.Wrong(c.Action == Retired && (c.Champion != "" || len(c.Shadows) > 0), "it retires the deployment, and names models for it"),
		config.Wrong(c.Action != Retired && !modelIDs.MatchString(c.Champion), "champion %q: must be the id of a model", printable(c.Champion)))
	if err != nil || c.Action == Retired {
		return err
	}
	return c.checkModels()
}

// checkModels checks shadows, champions before and the alarm.
func (c *Change) checkModels() error {
	seen := map[string]bool{c.Champion: true}
	for _, s := range c.Shadows {
		if !modelIDs.MatchString(s.Model) || s.Until.IsZero() {
			return fmt.Errorf("shadow %q until %v: must be the id of a model and a time", printable(s.Model), s.Until)
		}
		if seen[s.Model] {
			return fmt.Errorf("shadow %s: it is the champion or another shadow already", s.Model)
		}
		seen[s.Model] = true
	}
	alarms := []*AlarmRecord{c.Alarm}
	for _, p := range c.Previous {
		if !modelIDs.MatchString(p.Champion) {
			return fmt.Errorf("champion before %q: must be the id of a model", printable(p.Champion))
		}
		alarms = append(alarms, p.Alarm)
	}
	for _, a := range alarms {
		if a == nil {
			continue
		}
		if err := a.Settings().Check(); err != nil {
			return err
		}
	}
	return nil
}

// changeID returns the id of a change with that value: "42-1f3a9c02". The digits behind
// the number keep two changes with one number apart.
func changeID(number uint64, value []byte) string {
	sum := sha256.Sum256(value)
	return strconv.FormatUint(number, 10) + "-" + hex.EncodeToString(sum[:4])
}

// encode returns the message of a change.
func (c *Change) encode(s signer) (bus.Message, error) {
	if err := c.check(); err != nil {
		return bus.Message{}, err
	}
	value, err := json.Marshal(c)
	if err != nil {
		return bus.Message{}, err
	}
	return message(s, changePrefix+changeID(c.Number, value), changeType, "application/json", c.At, value), nil
}

// message returns the message of a record.
func message(s signer, key, typ, contentType string, at time.Time, value []byte) bus.Message {
	m := bus.Message{Topic: bus.TopicModels, Key: key, Value: value}
	for _, h := range [][2]string{
		{"ce_specversion", "1.0"}, {"ce_id", key}, {"ce_source", "/trainer"}, {"ce_type", typ},
		{"ce_time", at.UTC().Format(time.RFC3339Nano)}, {"ce_partitionkey", key}, {"content-type", contentType},
	} {
		m.Headers = append(m.Headers, bus.Header{Key: h[0], Value: []byte(h[1])})
	}
	m.Headers = append(m.Headers, s.sign(key, value)...)
	return m
}

// decodeChange reads a change. It trusts nothing but the key of the message, which names it.
func decodeChange(m bus.Message) (*Change, error) {
	c := new(Change)
	if err := decodeJSON(m.Value, c); err != nil {
		return nil, err
	}
	if id := strings.TrimPrefix(m.Key, changePrefix); id != changeID(c.Number, m.Value) {
		return nil, fmt.Errorf("its key is %s, and its value belongs to %s: it was changed or moved", printable(id), changeID(c.Number, m.Value))
	}
	return c, c.check()
}

// decodeJSON reads the value of a record. Fields that are not known are of newer releases.
func decodeJSON(value []byte, into any) error {
	if len(value) > maxRecord {
		return fmt.Errorf("%d bytes: a record has at most %d", len(value), maxRecord)
	}
	if err := json.Unmarshal(value, into); err != nil {
		return fmt.Errorf("its JSON cannot be read: %w", err)
	}
	return nil
}

// partsOf returns how many parts a file of that many bytes has.
func partsOf(size int64) int { return int((size + partSize - 1) / partSize) }

// partKey returns the key of a part of a model.
func partKey(id string, part int) string { return fmt.Sprintf("%s%s/%04d", modelPrefix, id, part) }

// encodeModel returns the messages of a model: its parts, then its manifest.
func encodeModel(s signer, file []byte, mf Manifest) ([]bus.Message, error) {
	sum := sha256.Sum256(file)
	mf.Size, mf.SHA256, mf.Parts = int64(len(file)), hex.EncodeToString(sum[:]), partsOf(int64(len(file)))
	if err := mf.check(); err != nil {
		return nil, err
	}
	var all []bus.Message
	for part := range mf.Parts {
		value := file[part*partSize : min((part+1)*partSize, len(file))]
		all = append(all, message(signer{}, partKey(mf.ID, part), partType, "application/octet-stream", mf.At, value))
	}
	value, err := json.Marshal(mf)
	if err != nil {
		return nil, err
	}
	return append(all, message(s, modelPrefix+mf.ID, modelType, "application/json", mf.At, value)), nil
}

// manifestOf describes a model.
func manifestOf(m *model.Model) Manifest {
	return Manifest{ID: m.ID(), Layout: ManifestLayout{m.Layout.Name(), m.Layout.Fingerprint()}, Title: m.String()}
}

func (mf *Manifest) check() error {
	return cmp.Or(
		config.Wrong(!modelIDs.MatchString(mf.ID), "id %q: must be the id of a model", printable(mf.ID)),
		config.Wrong(mf.Size < 1 || mf.Size > maxModel, "a model of %d bytes: must have from 1 to %d", mf.Size, maxModel),
		config.Wrong(mf.Parts != partsOf(mf.Size), "%d parts of a model of %d bytes: must be %d", mf.Parts, mf.Size, partsOf(mf.Size)),
		config.Wrong(!hexSums.MatchString(mf.SHA256), "sha256: must be 64 hexadecimal digits"),
		config.Wrong(!layoutIDs.MatchString(mf.Layout.Fingerprint), "layout %q: must be a fingerprint of 16 hexadecimal digits", printable(mf.Layout.Fingerprint)),
		config.Wrong(len(mf.By) > maxText || len(mf.Note) > maxText, "by and note: at most %d bytes each", maxText))
}

func decodeManifest(m bus.Message) (*Manifest, error) {
	mf := new(Manifest)
	if err := decodeJSON(m.Value, mf); err != nil {
		return nil, err
	}
	if m.Key != modelPrefix+mf.ID {
		return nil, fmt.Errorf("its key is %s, and it describes %s: it was moved", printable(m.Key), printable(mf.ID))
	}
	return mf, mf.check()
}

// Check reports why a model must not be rolled out over Kafka.
func Check(m *model.Model) error {
	if err := m.CheckDeployable(); err != nil {
		return err
	}
	return checkWindows(m)
}
