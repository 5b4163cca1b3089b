package train

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/signal"
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
	if err := config.Under("label", c.Label.Check()); err != nil {
		return err
	}
	if err := c.Reference.Check(); err != nil {
		return keyError("reference", "%s", strings.TrimPrefix(err.Error(), "reference: "))
	}
	rate := func(r float64) error {
		return config.Wrong(!(r >= 0 && r < 0.5), "%v: choose a rate below 0.5, such as 0.05, or 0 to leave it out", r)
	}
	return cmp.Or(
		config.Under("start", new(signal.Start).UnmarshalText([]byte(c.Start))),
		config.Under("gate", config.Wrong(c.Gate != "auto" && c.Gate != "off", "%q: choose auto or off", c.Gate)),
		config.Under("join", config.Wrong(!slices.Contains([]wear.Mode{wear.Auto, wear.Interpolate, wear.HoleEnd}, c.Join), "%q: choose %s, %s or %s", c.Join, wear.Auto, wear.Interpolate, wear.HoleEnd)),
		config.Under("unknown.error_rate", rate(c.Unknown.ErrorRate)),
		config.Under("unknown.novelty", rate(c.Unknown.Novelty)),
		config.Under("evaluate.by_tool", config.Wrong(!slices.Contains([]string{"leave-one-out", "5-fold", "off"}, c.Evaluate.ByTool), "%q: choose leave-one-out, 5-fold or off", c.Evaluate.ByTool)),
		config.Under("window.length", config.Wrong(c.Window.Length <= 0, "%v: must be positive, for example 1s", c.Window.Length)),
		c.Watch.check(),
		c.FirstDay.check(),
		c.checkNetwork())
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
	if of, ok := errors.AsType[*dbn.SettingError](err); ok {
		return &config.KeyError{Key: of.Key, Err: of.Err}
	}
	return err
}

// keyError returns an error that names the key of a configuration.
func keyError(key, format string, args ...any) error {
	return &config.KeyError{Key: key, Err: fmt.Errorf(format, args...)}
}
