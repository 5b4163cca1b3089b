package train

import (
	"errors"
	"fmt"
	"strings"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/wear"
)

// LoadConfig reads the configuration at path over the defaults and checks it.
// Errors name the file, the line and the key.
func LoadConfig(path string) (Config, error) {
	c := DefaultConfig()
	if err := config.Load(path, &c); err != nil {
		return Config{}, err
	}
	if len(c.Label.Classes) > 0 { // the default rule is one of two
		lines := config.Lines(path)
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
	wrong := func(key, format string, args ...any) error {
		return &config.KeyError{Key: key, Err: fmt.Errorf(format, args...)}
	}
	if err := c.Label.Check(); err != nil {
		var part *wear.RuleError
		if errors.As(err, &part) && part.Key != "" {
			return wrong("label."+part.Key, "%w", part.Err)
		}
		return wrong("label", "%w", err)
	}
	if err := c.Reference.Check(); err != nil {
		return wrong("reference", "%s", strings.TrimPrefix(err.Error(), "reference: "))
	}
	if c.Gate != "auto" && c.Gate != "off" {
		return wrong("gate", "%q: choose auto or off", c.Gate)
	}
	if c.Join != wear.Interpolate && c.Join != wear.HoleEnd {
		return wrong("join", "%q: choose %s or %s", c.Join, wear.Interpolate, wear.HoleEnd)
	}
	for key, rate := range map[string]float64{"unknown.error_rate": c.Unknown.ErrorRate, "unknown.novelty": c.Unknown.Novelty} {
		if !(rate >= 0 && rate < 0.5) {
			return wrong(key, "%v: choose a rate below 0.5, such as 0.05, or 0 to leave it out", rate)
		}
	}
	switch c.Evaluate.ByTool {
	case "leave-one-out", "5-fold", "off":
	default:
		return wrong("evaluate.by_tool", "%q: choose leave-one-out, 5-fold or off", c.Evaluate.ByTool)
	}
	if c.Window.Length <= 0 {
		return wrong("window.length", "%v: must be positive, for example 1s", c.Window.Length)
	}
	n := c.Network
	switch {
	case n.Pretrain.SparsityCost != 0 && n.Pretrain.Sparsity == 0:
		return wrong("network.pretrain.sparsity_cost", "%v: weighs the distance from a sparsity target that is not set: set `sparsity`, for example to 0.1", n.Pretrain.SparsityCost)
	case n.FineTune.Momentum != 0 && n.FineTune.Optimizer != "sgd":
		return wrong("network.fine_tune.momentum", "%v: adam has moments of its own: remove it, or set `optimizer: sgd`", n.FineTune.Momentum)
	case n.FineTune.Patience != 0 && !n.FineTune.EarlyStopping:
		return wrong("network.fine_tune.patience", "%d: nothing is stopped early: set `early_stopping: true`, or remove it", n.FineTune.Patience)
	case c.Costs.Fitness != "" && c.Costs.Fitness != Smoothed && c.Costs.Fitness != Raw:
		return wrong("costs.fitness", "%q: choose %s or %s", c.Costs.Fitness, Smoothed, Raw)
	}
	return c.checkEach()
}

// checkEach reports the first setting of the classifier that cannot be used,
// tried one by one, because the packages that know cannot name the key.
func (c *Config) checkEach() error {
	n := c.Network
	for _, one := range []struct {
		key string
		of  Config
	}{
		{"stability", Config{Stability: c.Stability}},
		{"network.encoding", Config{Network: Network{Encoding: n.Encoding}}},
		{"network.bins", Config{Network: Network{Bins: n.Bins}}},
		{"network.hidden", Config{Network: Network{Hidden: n.Hidden}}},
		{"network.pretrain.epochs", Config{Network: Network{Pretrain: Pretrain{Epochs: n.Pretrain.Epochs}}}},
		{"network.pretrain.batch", Config{Network: Network{Pretrain: Pretrain{Batch: n.Pretrain.Batch}}}},
		{"network.pretrain.rate", Config{Network: Network{Pretrain: Pretrain{Rate: n.Pretrain.Rate}}}},
		{"network.pretrain.momentum", Config{Network: Network{Pretrain: Pretrain{Momentum: n.Pretrain.Momentum}}}},
		{"network.pretrain.steps", Config{Network: Network{Pretrain: Pretrain{Steps: n.Pretrain.Steps}}}},
		{"network.pretrain.sparsity", Config{Network: Network{Pretrain: Pretrain{Sparsity: n.Pretrain.Sparsity}}}},
		{"network.pretrain.sparsity_cost", Config{Network: Network{Pretrain: Pretrain{SparsityCost: n.Pretrain.SparsityCost}}}},
		{"network.fine_tune.epochs", Config{Network: Network{FineTune: FineTune{Epochs: n.FineTune.Epochs}}}},
		{"network.fine_tune.batch", Config{Network: Network{FineTune: FineTune{Batch: n.FineTune.Batch}}}},
		{"network.fine_tune.optimizer", Config{Network: Network{FineTune: FineTune{Optimizer: n.FineTune.Optimizer}}}},
		{"network.fine_tune.rate", Config{Network: Network{FineTune: FineTune{Rate: n.FineTune.Rate}}}},
		{"network.fine_tune.momentum", Config{Network: Network{FineTune: FineTune{Momentum: n.FineTune.Momentum}}}},
		{"network.fine_tune.decay", Config{Network: Network{FineTune: FineTune{Decay: n.FineTune.Decay}}}},
		{"network.fine_tune.balance", Config{Network: Network{FineTune: FineTune{Balance: n.FineTune.Balance}}}},
		{"network.fine_tune.patience", Config{Network: Network{FineTune: FineTune{Patience: n.FineTune.Patience}}}},
		{"costs.posteriors", Config{Costs: Costs{Posteriors: c.Costs.Posteriors}}},
		{"costs.folds", Config{Costs: Costs{Folds: c.Costs.Folds}}},
		{"costs.metric", Config{Costs: Costs{Metric: c.Costs.Metric}}},
		{"costs.search", Config{Costs: Costs{Search: c.Costs.Search}}},
	} {
		if err := one.of.Settings(1).Check(2); err != nil {
			return &config.KeyError{Key: one.key, Err: err}
		}
	}
	return nil
}
