package dbn

import (
	"cmp"
	"fmt"
	"math"
)

// Settings says how a network is trained. The zero value is usable. A zero field
// takes the default that its comment names.
type Settings struct {
	Hidden       []int // units of the hidden layers, the lowest first; default 30, 30
	Visible      Unit  // of the lowest layer; default Bernoulli
	Pretrain     PretrainSettings
	FineTune     FineTuneSettings
	ClassWeights []float64 // weight of the rows of each class in the loss; nil counts as all 1
	Seed         uint64    // of all that is drawn at random
	Workers      int       // goroutines that share the rows of a batch; default 1, of use from 128 rows in a batch; the result does not depend on it

	// Progress, if not nil, is called on the training goroutine after every
	// epoch with the phase, "pretrain" or "finetune", the epochs done in it and
	// all epochs of it. The epochs of all layers count together.
	Progress func(phase string, done, total int)

	// Checkpoint, if not nil, is called on the training goroutine after every
	// epoch but the last. State, good for this call only, returns what Resume
	// needs to go on from there: some four times the network's bytes, and four
	// more for each row in memory. An error ends the training. Resume is such a
	// state or nil; a training that goes on from it returns the network and the
	// History of one that was never cut off, byte for byte. A state of other
	// settings or rows, or a damaged one, is refused with ErrResume. All labels
	// are compared, but of the rows 1,000 from all over.
	Checkpoint func(state func() []byte) error
	Resume     []byte
}

// PretrainSettings says how an RBM is trained by contrastive divergence. A
// negative Momentum or Decay stands for none. Tags are the keys of a
// configuration file.
type PretrainSettings struct {
	Epochs   int     `yaml:"epochs" json:"epochs,omitempty"`     // default 50; -1: no pre-training, weights start at random
	Batch    int     `yaml:"batch" json:"batch,omitempty"`       // rows in a step; default 10
	Steps    int     `yaml:"steps" json:"steps,omitempty"`       // of Gibbs sampling, the k of CD-k; default 1
	Rate     float64 `yaml:"rate" json:"rate,omitempty"`         // learning rate; default 0.05; a Gaussian layer learns at a tenth of it
	Momentum float64 `yaml:"momentum" json:"momentum,omitempty"` // after the first 5 epochs, in which it is at most 0.5; default 0.9
	Decay    float64 `yaml:"-" json:"-"`                         // L2 penalty of weights; default 2e-4

	// Persistent lets the chains of Gibbs sampling go on from step to step, one
	// for each row of a batch (PCD-k), instead of beginning at the batch. It
	// learns a better model of the rows and needs a low rate and no momentum.
	Persistent bool `yaml:"persistent" json:"persistent,omitempty"`
	// Sparsity is the share of rows for which a hidden unit should be on, for
	// example 0.1; 0: any. SparsityCost is the weight λ of the penalty λ·(q-p)²
	// of a unit's mean activity q away from it; default 1.
	Sparsity     float64 `yaml:"sparsity" json:"sparsity,omitempty"`
	SparsityCost float64 `yaml:"sparsity_cost" json:"sparsity_cost,omitempty"`

	// Rows, if not nil, are pre-trained on instead of the rows that have classes:
	// those and others like them, encoded alike. Pre-training asks for no class.
	Rows Rows `yaml:"-" json:"-"`

	// Validation holds rows that are not trained on, for the free-energy gap in
	// the History. Without rows the gap is not computed.
	Validation Matrix `yaml:"-" json:"-"`
}

// FineTuneSettings says how a network is trained by back-propagation. A
// negative Momentum or Decay stands for none. Tags are the keys of a
// configuration file.
type FineTuneSettings struct {
	Epochs   int     `yaml:"epochs" json:"epochs,omitempty"`       // default 150
	Batch    int     `yaml:"batch" json:"batch,omitempty"`         // rows in a step; default 16
	Rate     float64 `yaml:"rate" json:"rate,omitempty"`           // learning rate of the first epoch, falling linearly to a tenth in the last; default 0.005 for "adam", 0.1 for "sgd"
	Decay    float64 `yaml:"decay" json:"decay,omitempty"`         // L2 penalty of weights, not of biases, added to the mean loss of a row as Decay/2·Σw²; default 3e-4
	Method   string  `yaml:"optimizer" json:"optimizer,omitempty"` // "adam" or "sgd"; default "adam"
	Momentum float64 `yaml:"momentum" json:"momentum,omitempty"`   // of "sgd" only; default 0.9

	// Early stopping: with Validation rows, which must not be trained on, the
	// network that is kept comes from the epoch with the least cross-entropy on
	// them. Training ends after Patience epochs without a better one; default 20.
	Validation Matrix `yaml:"-" json:"-"`
	Labels     []int  `yaml:"-" json:"-"` // of the Validation rows
	Patience   int    `yaml:"patience" json:"patience,omitempty"`
}

// SettingError reports a setting that cannot be used.
type SettingError struct {
	Key string // its path in a configuration, such as fine_tune.rate
	Err error  // its value, and what it must be
}

func (e *SettingError) Error() string { return e.Key + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e *SettingError) Unwrap() error { return e.Err }

// wrong returns a SettingError.
func wrong(key, format string, args ...any) error {
	return &SettingError{key, fmt.Errorf(format, args...)}
}

// Methods of fine-tuning.
const (
	adam = "adam"
	sgd  = "sgd"
)

const (
	maxWidth  = 1 << 20 // units of a layer
	maxLayers = 64
)

// option returns v, or def if v is zero, or 0 if v is negative.
func option(v, def float64) float64 {
	return max(0, cmp.Or(v, def))
}

func (s Settings) withDefaults() Settings {
	if len(s.Hidden) == 0 {
		s.Hidden = []int{30, 30}
	}
	s.Visible = cmp.Or(s.Visible, Bernoulli)
	s.Workers = cmp.Or(s.Workers, 1)
	s.Pretrain = s.Pretrain.withDefaults()
	s.FineTune = s.FineTune.withDefaults()
	return s
}

func (s PretrainSettings) withDefaults() PretrainSettings {
	s.Epochs = cmp.Or(s.Epochs, 50)
	s.Batch = cmp.Or(s.Batch, 10)
	s.Steps = cmp.Or(s.Steps, 1)
	s.Rate = cmp.Or(s.Rate, 0.05)
	s.Momentum = option(s.Momentum, 0.9)
	s.Decay = option(s.Decay, 2e-4)
	s.SparsityCost = cmp.Or(s.SparsityCost, 1)
	return s
}

func (s FineTuneSettings) withDefaults() FineTuneSettings {
	s.Epochs = cmp.Or(s.Epochs, 150)
	s.Batch = cmp.Or(s.Batch, 16)
	s.Method = cmp.Or(s.Method, adam)
	rate := 0.005
	if s.Method == sgd {
		rate = 0.1
	}
	s.Rate = cmp.Or(s.Rate, rate)
	s.Momentum = option(s.Momentum, 0.9)
	s.Decay = option(s.Decay, 3e-4)
	s.Patience = cmp.Or(s.Patience, 20)
	return s
}

// Check reports the first setting that cannot be used for the given number of
// classes, as Train would before it looks at any row. The error wraps a
// SettingError.
func (s Settings) Check(classes int) error {
	if err := s.withDefaults().check(classes); err != nil {
		return fmt.Errorf("dbn: %w", err)
	}
	return nil
}

func (s Settings) checkWeights(classes int) error {
	if s.ClassWeights != nil && len(s.ClassWeights) != classes {
		return wrong("class_weights", "%d weights for %d classes: give each class one", len(s.ClassWeights), classes)
	}
	for j, w := range s.ClassWeights {
		if !(w >= 0) || math.IsInf(w, 0) {
			return wrong("class_weights", "class %d: %v: must be zero or positive", j, w)
		}
	}
	return nil
}

// check reports the first setting that cannot be used for the given number of
// classes. Defaults are in place.
func (s Settings) check(classes int) error {
	if len(s.Hidden) > maxLayers-1 {
		return wrong("hidden", "%d layers: at most %d are supported", len(s.Hidden), maxLayers-1)
	}
	for i, h := range s.Hidden {
		if h < 1 || h > maxWidth {
			return wrong("hidden", "layer %d has %d units: must be from 1 to %d", i+1, h, maxWidth)
		}
	}
	if s.Visible != Bernoulli && s.Visible != Gaussian {
		return wrong("visible", "%q: must be %q or %q", s.Visible, Bernoulli, Gaussian)
	}
	if err := s.checkWeights(classes); err != nil {
		return err
	}
	if s.Workers < 1 {
		return wrong("workers", "%d: must be positive", s.Workers)
	}
	if err := s.Pretrain.check(); err != nil {
		return err
	}
	return s.FineTune.check()
}

func (s PretrainSettings) check() error {
	switch {
	case s.Epochs < -1:
		return wrong("pretrain.epochs", "%d: must be positive, or -1 for none", s.Epochs)
	case s.Batch < 1:
		return wrong("pretrain.batch", "%d: must be positive", s.Batch)
	case s.Steps < 1:
		return wrong("pretrain.steps", "%d: must be positive", s.Steps)
	case !(s.Sparsity >= 0 && s.Sparsity < 1):
		return wrong("pretrain.sparsity", "%v: must be a share of rows below 1, or 0 for none", s.Sparsity)
	case !(s.SparsityCost > 0) || math.IsInf(s.SparsityCost, 0):
		return wrong("pretrain.sparsity_cost", "%v: must be positive", s.SparsityCost)
	}
	return checkDescent("pretrain.", s.Rate, s.Momentum, s.Decay)
}

func (s FineTuneSettings) check() error {
	switch {
	case s.Epochs < 1:
		return wrong("fine_tune.epochs", "%d: must be positive", s.Epochs)
	case s.Batch < 1:
		return wrong("fine_tune.batch", "%d: must be positive", s.Batch)
	case s.Method != adam && s.Method != sgd:
		return wrong("fine_tune.optimizer", "%q: must be %q or %q", s.Method, adam, sgd)
	case s.Patience < 1:
		return wrong("fine_tune.patience", "%d: must be positive", s.Patience)
	}
	return checkDescent("fine_tune.", s.Rate, s.Momentum, s.Decay)
}

// checkDescent checks what both phases have. phase begins the keys.
func checkDescent(phase string, rate, momentum, decay float64) error {
	switch {
	case !(rate > 0) || math.IsInf(rate, 0):
		return wrong(phase+"rate", "%v: must be positive", rate)
	case !(momentum < 1):
		return wrong(phase+"momentum", "%v: must be below 1", momentum)
	case !(decay >= 0) || math.IsInf(decay, 0):
		return wrong(phase+"decay", "%v: must be a number", decay)
	}
	return nil
}
