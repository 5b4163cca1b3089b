// Package train is the trainer as a value: from recordings and wear labels to
// a model and an honest score.
//
// Every recording is cut into windows and observed by the code that will serve
// the model (source.Cutter, model.Judge). A window gets its label from the
// recording itself or from a wear file, by the rule of the configuration.
// Tools, never windows, are held out for the score; a random split is shown
// beside it, named as leaky.
package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/flank-tcm/flank/internal/wear"
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

	Window    Window              `yaml:"window" json:"window"`
	Features  signal.FeatureSpec  `yaml:"features" json:"features"`
	Reference model.ReferenceSpec `yaml:"reference" json:"reference"`
	Gate      string              `yaml:"gate" json:"gate"` // "auto": learn from the first force channel when the machine cuts; "off": judge every window

	Label wear.Rule `yaml:"label" json:"label"`
	Join  wear.Mode `yaml:"join" json:"join"` // how a wear file's measurements become labels of windows

	Network  Network  `yaml:"network" json:"network"`
	Costs    Costs    `yaml:"costs" json:"costs"`
	Evaluate Evaluate `yaml:"evaluate" json:"evaluate"`
	Seed     uint64   `yaml:"seed" json:"seed"`
}

// MarshalJSON writes the configuration with the keys of train.yaml.
func (c Config) MarshalJSON() ([]byte, error) {
	type plain Config
	return json.Marshal(struct {
		plain
		Label model.LabelRule `json:"label"` // the same fields, with keys
	}{plain(c), model.LabelRule(c.Label)})
}

// Window is the length and hop of windows; a hop of 0 is the length.
type Window struct {
	Length time.Duration `yaml:"length"`
	Hop    time.Duration `yaml:"hop"`
}

// MarshalJSON writes durations as train.yaml has them.
func (w Window) MarshalJSON() ([]byte, error) {
	text := map[string]string{"length": w.Length.String()}
	if w.Hop != 0 {
		text["hop"] = w.Hop.String()
	}
	return json.Marshal(text)
}

// Network says how features are encoded and the network is trained. Zero
// fields take the defaults of classify.Settings and dbn.Settings.
type Network struct {
	Encoding classify.Encoding `yaml:"encoding" json:"encoding,omitempty"`
	Bins     int               `yaml:"bins" json:"bins,omitempty"`
	Hidden   []int             `yaml:"hidden" json:"hidden,omitempty"`
	Pretrain struct {
		Epochs int     `yaml:"epochs" json:"epochs,omitempty"` // −1: none
		Batch  int     `yaml:"batch" json:"batch,omitempty"`
		Rate   float64 `yaml:"rate" json:"rate,omitempty"`
	} `yaml:"pretrain" json:"pretrain"`
	FineTune struct {
		Epochs int     `yaml:"epochs" json:"epochs,omitempty"`
		Batch  int     `yaml:"batch" json:"batch,omitempty"`
		Rate   float64 `yaml:"rate" json:"rate,omitempty"`
		Decay  float64 `yaml:"decay" json:"decay,omitempty"`
	} `yaml:"fine_tune" json:"fine_tune"`
}

// Costs says on which posteriors the costs are evolved.
type Costs struct {
	Posteriors classify.Posteriors `yaml:"posteriors" json:"posteriors,omitempty"`
	Folds      int                 `yaml:"folds" json:"folds,omitempty"`
}

// Evaluate says which scores are computed.
type Evaluate struct {
	ByTool      string `yaml:"by_tool" json:"by_tool"`           // "leave-one-out", "5-fold" or "off"
	RandomSplit bool   `yaml:"random_split" json:"random_split"` // the leaky one, to show how far it flatters
}

// DefaultConfig returns the configuration that an empty train.yaml means.
func DefaultConfig() Config {
	return Config{
		Window:    Window{Length: window.DefaultSpec.Length},
		Features:  signal.FeatureSpec{Version: 1}, // docs/features.md says why not the newest
		Reference: model.DefaultReference,
		Gate:      "auto",
		Label:     wear.DefaultRule(),
		Join:      wear.Interpolate,
		Evaluate:  Evaluate{ByTool: "leave-one-out", RandomSplit: true},
		Seed:      1,
	}
}

// Check reports the first setting that cannot be used, whatever the data.
func (c *Config) Check() error {
	if err := c.Label.Check(); err != nil {
		return fmt.Errorf("label: %w", err)
	}
	if err := c.Reference.Check(); err != nil {
		return err
	}
	if c.Gate != "auto" && c.Gate != "off" {
		return fmt.Errorf("gate: %q: choose auto or off", c.Gate)
	}
	if c.Join != wear.Interpolate && c.Join != wear.HoleEnd {
		return fmt.Errorf("join: %q: choose %s or %s", c.Join, wear.Interpolate, wear.HoleEnd)
	}
	switch c.Evaluate.ByTool {
	case "leave-one-out", "5-fold", "off":
	default:
		return fmt.Errorf("evaluate: by_tool: %q: choose leave-one-out, 5-fold or off", c.Evaluate.ByTool)
	}
	if c.Window.Length <= 0 {
		return errors.New("window: length must be positive, for example 1s")
	}
	return nil
}

func (c *Config) spec() window.Spec { return window.Spec{Length: c.Window.Length, Hop: c.Window.Hop} }

// settings returns the classifier's settings.
func (c *Config) settings(workers int) classify.Settings {
	n := c.Network
	return classify.Settings{
		Encoding: n.Encoding,
		Bins:     n.Bins,
		Network: dbn.Settings{
			Hidden:   n.Hidden,
			Pretrain: dbn.PretrainSettings{Epochs: n.Pretrain.Epochs, Batch: n.Pretrain.Batch, Rate: n.Pretrain.Rate},
			FineTune: dbn.FineTuneSettings{Epochs: n.FineTune.Epochs, Batch: n.FineTune.Batch, Rate: n.FineTune.Rate, Decay: n.FineTune.Decay},
		},
		Costs:   classify.CostSettings{Posteriors: c.Costs.Posteriors, Folds: c.Costs.Folds},
		Seed:    c.Seed,
		Workers: workers,
	}
}
