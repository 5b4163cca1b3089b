package train

import (
	"errors"
	"fmt"
	"strings"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// LoadConfig reads the configuration at path over the defaults and checks it.
// Errors name the file, the line and the key.
func LoadConfig(path string) (Config, error) {
	c := DefaultConfig()
	if err := config.Load(path, &c); err != nil {
		return Config{}, err
	}
	if c.Guard == "" { // which means the default elsewhere
		return Config{}, config.Locate(path, keyError("guard", "it is empty: choose %s, %s or %s, or leave it out", classify.GuardVoteAndGains, classify.GuardVote, classify.GuardOff))
	}
	lines := config.Lines(path)
	_, c.Window.Said = lines["window.length"]
	_, c.ReferenceSaid = lines["reference.windows"]
	if len(c.Label.Classes) > 0 { // the default rule is one of two
		if _, named := lines["label.vb_max_um"]; !named {
			c.Label.VBMaxUM = 0
		}
		if _, named := lines["label.states"]; !named {
			c.Label.States = nil
		}
	}
	if err := c.Check(); err != nil {
		return Config{}, config.Locate(path, err)
	}
	return c, nil
}

// Check reports the first setting that cannot be used with any data. The
// error wraps a config.KeyError.
func (c *Config) Check() error {
	if err := c.Label.Check(); err != nil {
		var part *wear.RuleError
		if errors.As(err, &part) && part.Key != "" {
			return keyError("label."+part.Key, "%w", part.Err)
		}
		return keyError("label", "%w", err)
	}
	if err := c.Reference.Check(); err != nil {
		return keyError("reference", "%s", strings.TrimPrefix(err.Error(), "reference: "))
	}
	if err := new(source.Start).UnmarshalText([]byte(c.Start)); err != nil {
		return keyError("start", "%w", err)
	}
	if c.Gate != "auto" && c.Gate != "off" {
		return keyError("gate", "%q: choose auto or off", c.Gate)
	}
	if c.Join != wear.Auto && c.Join != wear.Interpolate && c.Join != wear.HoleEnd {
		return keyError("join", "%q: choose %s, %s or %s", c.Join, wear.Auto, wear.Interpolate, wear.HoleEnd)
	}
	for key, rate := range map[string]float64{"unknown.error_rate": c.Unknown.ErrorRate, "unknown.novelty": c.Unknown.Novelty} {
		if !(rate >= 0 && rate < 0.5) {
			return keyError(key, "%v: choose a rate below 0.5, such as 0.05, or 0 to leave it out", rate)
		}
	}
	switch c.Evaluate.ByTool {
	case "leave-one-out", "5-fold", "off":
	default:
		return keyError("evaluate.by_tool", "%q: choose leave-one-out, 5-fold or off", c.Evaluate.ByTool)
	}
	if c.Window.Length <= 0 {
		return keyError("window.length", "%v: must be positive, for example 1s", c.Window.Length)
	}
	return c.checkNetwork()
}

// checkNetwork reports the first setting of the network that cannot be used.
func (c *Config) checkNetwork() error {
	n := c.Network
	switch {
	case n.Pretrain.SparsityCost != 0 && n.Pretrain.Sparsity == 0:
		return keyError("network.pretrain.sparsity_cost", "%v: weighs the distance from a sparsity target that is not set: set `sparsity`, for example to 0.1", n.Pretrain.SparsityCost)
	case n.FineTune.Momentum != 0 && n.FineTune.Method != "sgd":
		return keyError("network.fine_tune.momentum", "%v: adam has moments of its own: remove it, or set `optimizer: sgd`", n.FineTune.Momentum)
	case n.FineTune.Patience != 0 && !n.FineTune.EarlyStopping:
		return keyError("network.fine_tune.patience", "%d: nothing is stopped early: set `early_stopping: true`, or remove it", n.FineTune.Patience)
	}
	err := c.Settings(1).Check(2)
	var of *dbn.SettingError
	if errors.As(err, &of) {
		return &config.KeyError{Key: of.Key, Err: of.Err}
	}
	return err
}

// keyError returns an error that names the key of a configuration.
func keyError(key, format string, args ...any) error {
	return &config.KeyError{Key: key, Err: fmt.Errorf(format, args...)}
}
