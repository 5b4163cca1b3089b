package event

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/plain"
)

// LabelType is the CloudEvents type of a label.
const LabelType = "io.tcm.label.v1"

// Label says how worn a tool was: after a hole, at a time, from a time until another one, or all the time. The topic keeps the last
// record of each [Label.Key], so a label of the same place is a correction.
type Label struct {
	ID         string    `json:"id"` // see NewLabelID
	Machine    string    `json:"machine"`
	Tool       string    `json:"tool"`
	ToolLife   string    `json:"tool_life,omitempty"` // as in the results of its windows
	Hole       string    `json:"hole,omitempty"`      // that the tool had just ended
	At         time.Time `json:"at,omitzero"`         // when it was that worn, or from when on
	Until      time.Time `json:"until,omitzero"`      // until when; zero if At is a moment
	WearUM     *float64  `json:"wear_um,omitempty"`   // maximum flank wear
	WearMeanUM *float64  `json:"wear_mean_um,omitempty"`
	State      string    `json:"state,omitempty"`    // a word such as worn, or the name of a class
	Method     string    `json:"method,omitempty"`   // how it was measured, such as microscope or eye
	Incident   string    `json:"incident,omitempty"` // the alarm that it answers
	By         string    `json:"by"`
	Note       string    `json:"note,omitempty"`
	Given      time.Time `json:"given"` // by the sender's clock
	Revoked    *Revoked  `json:"revoked,omitempty"`
}

// Revoked says that a label does not count any more.
type Revoked struct {
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Key returns the key of the label on its topic: what it is of, and when.
func (l Label) Key() string {
	when := ""
	if !l.At.IsZero() {
		when = l.At.UTC().Format(time.RFC3339Nano)
	}
	return strings.Join([]string{l.Machine, l.Tool, l.ToolLife, l.Hole, when}, "\x1f")
}

// NewLabelID returns the id of a label: the same for labels of one key.
func (l Label) NewLabelID() string {
	sum := sha256.Sum256([]byte(l.Key()))
	return "L-" + base32.StdEncoding.EncodeToString(sum[:])[:12]
}

// Known is the wear, or the state, in words.
func (l Label) Known() string {
	var words []string
	if l.WearUM != nil {
		words = append(words, fmt.Sprintf("%.4g µm", *l.WearUM))
	}
	if l.WearMeanUM != nil {
		words = append(words, fmt.Sprintf("%.4g µm on average", *l.WearMeanUM))
	}
	if l.State != "" {
		words = append(words, l.State)
	}
	return strings.Join(words, ", ")
}

// ParseWear reads wear with its unit, such as 0.34 mm, 0,34 mm or 340 µm, and returns it in µm.
func ParseWear(text string) (um float64, err error) {
	number := strings.TrimRight(strings.TrimSpace(text), "munµμ ")
	unit := strings.TrimSpace(strings.TrimSpace(text)[len(number):])
	if !strings.Contains(number, ".") {
		number = strings.Replace(number, ",", ".", 1)
	}
	um, err = strconv.ParseFloat(number, 64)
	switch {
	case err != nil:
		return 0, fmt.Errorf("wear %.40q: expected a number and its unit, such as 0.34 mm or 340 µm", text)
	case unit == "mm":
		um = math.Round(um*1e6) / 1e3
	case unit != "um" && unit != "µm" && unit != "μm":
		return 0, fmt.Errorf("wear %.40q: say the unit, as in 0.34 mm or 340 µm", text)
	}
	if !(um >= 0 && um <= maxWearUM) {
		return 0, fmt.Errorf("wear %.40q: expected 0 to %d mm: is it in another unit?", text, maxWearUM/1000)
	}
	return um, nil
}

// maxWearUM is more flank wear, in µm, than a tool has that still cuts.
const maxWearUM = 10_000

// Check reports what is wrong with a label, of any kind.
func (l Label) Check() error {
	if err := l.checkTexts(); err != nil {
		return err
	}
	wrong := func(um *float64) bool { return um != nil && !(*um >= 0 && *um <= maxWearUM) }
	return cmp.Or(
		config.Wrong(l.Known() == "", "wear_um, state: say how worn the tool was, by one of them"),
		config.Wrong(wrong(l.WearUM) || wrong(l.WearMeanUM), "wear_um: expected 0 to %d µm: is it in another unit?", maxWearUM),
		config.Wrong(l.WearUM != nil && l.WearMeanUM != nil && *l.WearMeanUM > *l.WearUM, "wear_mean_um: is above the maximum wear: exchange them"),
		config.Wrong(!l.Until.IsZero() && !l.Until.After(l.At), "until: must be later than at"),
		config.Wrong(l.Incident != "" && !incident.MatchString(l.Incident), "incident %.32q: expected one as in A-K3ZQ7M2P", l.Incident),
		config.Wrong(l.Given.IsZero(), "given: say when"),
		config.Wrong(l.ID != l.NewLabelID(), "id %.32q: expected %s, which follows from machine, tool, tool_life, hole and at", l.ID, l.NewLabelID()))
}

// checkTexts checks the names, and the texts that people write.
func (l Label) checkTexts() error {
	reason := ""
	if l.Revoked != nil {
		if reason = l.Revoked.Reason; reason == "" || l.Revoked.By == "" || l.Revoked.At.IsZero() {
			return fmt.Errorf("revoked: say by whom, why and when")
		}
	}
	for _, f := range []struct {
		name, text string
		most       int
	}{
		{"machine", l.Machine, maxNote}, {"tool_life", l.ToolLife, maxTool}, {"hole", l.Hole, maxTool}, {"state", l.State, maxBy}, {"method", l.Method, maxBy},
		{"by", l.By, maxBy}, {"note", l.Note, maxNote}, {"revoked: reason", reason, maxNote},
	} {
		if err := cmp.Or(plain.Check(f.text), config.Wrong(len(f.text) > f.most, "at most %d bytes of UTF-8", f.most)); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	name, err := plain.Name(l.Tool)
	if err != nil {
		return fmt.Errorf("tool: %w", err)
	}
	return cmp.Or(
		config.Wrong(l.Machine == "", "machine: name it by its path"),
		config.Wrong(l.Tool == "" || name != l.Tool || len(l.Tool) > maxTool, "tool %.80q: name it as its windows do, in 1 to %d bytes of UTF-8", l.Tool, maxTool),
		config.Wrong(l.By == "", "by: say who it is"))
}
