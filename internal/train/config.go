// Package train is the trainer as a value: from recordings and wear labels to
// a model and an honest score.
//
// Every recording is cut into windows and observed by the code that will serve
// the model (source.Cutter, model.Judge). A window gets its label from the
// recording itself or from a wear file, by the rule of the configuration.
// Tools, never windows, are held out for the score; a random split is shown
// next to it, named as leaky.
package train

import (
	"encoding/json"
	"time"

	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// Config is a training configuration, train.yaml. Paths in it are relative to
// the file.
type Config struct {
	Layout string `yaml:"layout" json:"layout,omitempty"` // layout file; empty: the gun drill's 14 channels
	Wear   string `yaml:"wear" json:"wear,omitempty"`     // wear file; empty: labels are columns of the recordings
	Start  string `yaml:"start" json:"start,omitempty"`   // when recordings began that do not say it, see source.ParseStart; empty: their times are seconds from the start

	Window    windowConfig        `yaml:"window" json:"window"`
	Features  signal.FeatureSpec  `yaml:"features" json:"features"`
	Reference model.ReferenceSpec `yaml:"reference" json:"reference"`
	Gate      string              `yaml:"gate" json:"gate"` // "auto": learn from force and torque when the machine cuts; "off": judge every window

	ReferenceSaid bool `yaml:"-" json:"-"` // the file says of how many windows a reference is; else the trainer may choose

	Label wear.Rule `yaml:"label" json:"label"`
	Join  wear.Mode `yaml:"join" json:"join"` // how a wear file's measurements become labels of windows

	// Stability says whether features count by how steadily they follow the life of every
	// tool; see classify.Settings. Features whose names match one of Exclude do not count
	// at all; * stands for any characters.
	Stability classify.Stability `yaml:"stability" json:"stability,omitempty"`

	// Guard says whether a vote of sensors bounds the network, and whether steps of gains are taken out; default "vote-and-gains".
	Guard   classify.Guard `yaml:"guard" json:"guard,omitempty"`
	Exclude []string       `yaml:"exclude" json:"exclude,omitempty"`

	// Ignore names columns of tables that are left out when they are read, with * for any
	// characters: text, and what is not a feature.
	Ignore []string `yaml:"ignore" json:"ignore,omitempty"`

	Network  networkConfig         `yaml:"network" json:"network"`
	Costs    classify.CostSettings `yaml:"costs" json:"costs"`
	Unknown  unknownConfig         `yaml:"unknown" json:"unknown"`
	Evaluate Evaluate              `yaml:"evaluate" json:"evaluate"`
	Seed     uint64                `yaml:"seed" json:"seed"`

	FirstDay firstDayConfig `yaml:"first_day" json:"first_day,omitzero"`

	// Watch says when the model should be trained again. It does not change the model, which does not name it.
	Watch WatchConfig `yaml:"watch" json:"-"`
}

// MarshalJSON writes the configuration with the keys of train.yaml.
func (c Config) MarshalJSON() ([]byte, error) {
	type plain Config
	return json.Marshal(struct {
		plain
		Label model.LabelRule `json:"label"` // the same fields, with keys
	}{plain(c), labelRule(c.Label)})
}

// windowConfig is the length and hop of windows; a hop of 0 is the length.
type windowConfig struct {
	Length time.Duration `yaml:"length"`
	Hop    time.Duration `yaml:"hop"`
	Said   bool          `yaml:"-"` // the file says the length: for rows of a table it is known then
}

// MarshalJSON writes durations as train.yaml has them.
func (w windowConfig) MarshalJSON() ([]byte, error) {
	text := map[string]string{"length": w.Length.String()}
	if w.Hop != 0 {
		text["hop"] = w.Hop.String()
	}
	return json.Marshal(text)
}

// networkConfig says how features are encoded and the network is trained. Zero
// fields take the defaults of classify.Settings and dbn.Settings.
type networkConfig struct {
	Encoding classify.Encoding    `yaml:"encoding" json:"encoding,omitempty"`
	Bins     int                  `yaml:"bins" json:"bins,omitempty"`
	Hidden   []int                `yaml:"hidden" json:"hidden,omitempty"`
	Pretrain dbn.PretrainSettings `yaml:"pretrain" json:"pretrain"`
	FineTune fineTuneConfig       `yaml:"fine_tune" json:"fine_tune"`
}

// fineTuneConfig says how the network is trained by back-propagation.
type fineTuneConfig struct {
	dbn.FineTuneSettings `yaml:",inline"`

	Balance       float64 `yaml:"balance" json:"balance,omitempty"`               // from 0, all windows count alike, to 1, all classes do; −1: 0
	EarlyStopping bool    `yaml:"early_stopping" json:"early_stopping,omitempty"` // on a fifth of the tools, which are not trained on
}

// unknownConfig says when a window is neither healthy nor faulty. A rate of 0 leaves its part
// out of the model.
type unknownConfig struct {
	ErrorRate float64 `yaml:"error_rate" json:"error_rate"` // of conformal sets, for each class; see unknown.Conformal
	Novelty   float64 `yaml:"novelty" json:"novelty"`       // p-value up to which a window is out of distribution; see unknown.Novelty
}

// Evaluate says which scores are computed.
type Evaluate struct {
	ByTool      string `yaml:"by_tool" json:"by_tool"`           // "leave-one-out", "5-fold" or "off"
	RandomSplit bool   `yaml:"random_split" json:"random_split"` // the leaky one, to show how far it flatters

	// Transductive lets the networks that judge a tool held out learn from its windows
	// without a label. The score is then of tools whose windows are at hand.
	Transductive bool `yaml:"transductive" json:"transductive,omitempty"`
}

// DefaultConfig returns the configuration that an empty train.yaml means.
func DefaultConfig() Config {
	return Config{
		Window:    windowConfig{Length: window.DefaultSpec.Length},
		Features:  signal.FeatureSpec{Version: signal.FeatureVersion},
		Reference: model.DefaultReference,
		Gate:      "auto",
		Label:     wear.DefaultRule(),
		Join:      wear.Auto,
		Guard:     classify.GuardVoteAndGains,
		Unknown:   unknownConfig{ErrorRate: 0.05, Novelty: 0.01},
		Evaluate:  Evaluate{ByTool: "leave-one-out", RandomSplit: true},
		Seed:      1,
		Watch:     defaultWatch,
	}
}

func (c *Config) spec() window.Spec { return window.Spec{Length: c.Window.Length, Hop: c.Window.Hop} }

// guard returns the guard. Where windows overlap, a step in a gain comes little by little, and is not looked for.
func (c *Config) guard() classify.Guard {
	if c.Guard == classify.GuardVoteAndGains && c.overlaps() {
		return classify.GuardVote
	}
	return c.Guard
}

func (c *Config) overlaps() bool { return c.Window.Hop > 0 && c.Window.Hop < c.Window.Length }

// Settings returns the classifier's settings.
func (c *Config) Settings(workers int) classify.Settings {
	n := c.Network
	return classify.Settings{
		Encoding:     n.Encoding,
		Bins:         n.Bins,
		Network:      dbn.Settings{Hidden: n.Hidden, Pretrain: n.Pretrain, FineTune: n.FineTune.FineTuneSettings},
		Balance:      n.FineTune.Balance,
		EarlyStop:    n.FineTune.EarlyStopping,
		Stability:    c.Stability,
		Guard:        c.guard(),
		Transductive: c.Evaluate.Transductive,
		Costs:        c.Costs,
		Seed:         c.Seed,
		Workers:      workers,
	}
}
