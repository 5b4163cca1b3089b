package train

import (
	"encoding/json"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/config/reference"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/jade"
	"github.com/flank-tcm/flank/pkg/score"
)

func TestConfigCheck(t *testing.T) {
	c := DefaultConfig()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Config){
		"label: vb_max_um: -1: must be a positive":                             func(c *Config) { c.Label.VBMaxUM = -1 },
		"label: wear: rule: nothing makes a tool faulty: set":                  func(c *Config) { c.Label = wear.Rule{} },
		"reference: 0 windows: learn from 1 to 200":                            func(c *Config) { c.Reference.Windows = 0 },
		`reference: mode "logs" is not one of "auto"`:                          func(c *Config) { c.Reference.Mode = "logs" },
		`start: "today": write a date, time and zone, as 2026-11-02T06:00:00Z`: func(c *Config) { c.Start = "today" },
		`gate: "yes": choose auto or off`:                                      func(c *Config) { c.Gate = "yes" },
		`join: "nearest": choose auto, interpolate or hole-end`:                func(c *Config) { c.Join = "nearest" },
		`evaluate: by_tool: "3-fold": choose leave-one-out, 5-fold`:            func(c *Config) { c.Evaluate.ByTool = "3-fold" },
		"window: length: 0s: must be positive, for example 1s":                 func(c *Config) { c.Window.Length = 0 },
		`network: encoding: "onehot": must be one of`:                          func(c *Config) { c.Network.Encoding = "onehot" },
		"network: bins: 4096: must be from 1 to":                               func(c *Config) { c.Network.Bins = 4096 },
		"network: fine_tune: balance: 2: must be from 0":                       func(c *Config) { c.Network.FineTune.Balance = 2 },
		"network: hidden: layer 2 has 0 units":                                 func(c *Config) { c.Network.Hidden = []int{3, 0} },
		`stability: "on": must be`:                                             func(c *Config) { c.Stability = "on" },
		"network: pretrain: epochs: -2: must be":                               func(c *Config) { c.Network.Pretrain.Epochs = -2 },
		"network: pretrain: batch: -1: must be":                                func(c *Config) { c.Network.Pretrain.Batch = -1 },
		"network: pretrain: rate: -1: must be":                                 func(c *Config) { c.Network.Pretrain.Rate = -1 },
		"network: fine_tune: epochs: -1: must be":                              func(c *Config) { c.Network.FineTune.Epochs = -1 },
		"network: fine_tune: batch: -1: must be":                               func(c *Config) { c.Network.FineTune.Batch = -1 },
		"network: fine_tune: rate: -1: must be":                                func(c *Config) { c.Network.FineTune.Rate = -1 },
		"network: fine_tune: decay: +Inf: must be":                             func(c *Config) { c.Network.FineTune.Decay = math.Inf(1) },
		"network: fine_tune: momentum: 1: must be below 1":                     func(c *Config) { c.Network.FineTune.Method, c.Network.FineTune.Momentum = "sgd", 1 },
		"network: pretrain: sparsity_cost: -1: must be":                        func(c *Config) { c.Network.Pretrain.Sparsity, c.Network.Pretrain.SparsityCost = 0.1, -1 },
		"costs: folds: 1: must be":                                             func(c *Config) { c.Costs.Folds = 1 },
		"network: pretrain: steps: -1: must be positive":                       func(c *Config) { c.Network.Pretrain.Steps = -1 },
		"network: pretrain: sparsity: 1: must be a share":                      func(c *Config) { c.Network.Pretrain.Sparsity = 1 },
		"network: pretrain: sparsity_cost: 2: weighs the distance from a sparsity target that is not set: set `sparsity`": func(c *Config) { c.Network.Pretrain.SparsityCost = 2 },
		"network: pretrain: momentum: 1: must be below 1":                                                                 func(c *Config) { c.Network.Pretrain.Momentum = 1 },
		`network: fine_tune: optimizer: "rmsprop": must be "adam" or "sgd"`:                                               func(c *Config) { c.Network.FineTune.Method = "rmsprop" },
		"network: fine_tune: momentum: 0.9: adam has moments of its own: remove it, or set `optimizer: sgd`":              func(c *Config) { c.Network.FineTune.Momentum = 0.9 },
		"network: fine_tune: patience: 5: nothing is stopped early: set `early_stopping: true`":                           func(c *Config) { c.Network.FineTune.Patience = 5 },
		"network: fine_tune: patience: -5: must be positive":                                                              func(c *Config) { c.Network.FineTune.EarlyStopping, c.Network.FineTune.Patience = true, -5 },
		`costs: posteriors: "test": must be`:                                                                              func(c *Config) { c.Costs.Posteriors = "test" },
		`costs: metric: "accuracy": must be one of`:                                                                       func(c *Config) { c.Costs.Metric = "accuracy" },
		`costs: fitness: "exact": must be "smoothed" or "raw"`:                                                            func(c *Config) { c.Costs.Fitness = "exact" },
		`costs: search: jade: variant "cmaes": must be "jade", "paper" or "literal"`:                                      func(c *Config) { c.Costs.Search = "cmaes" },
	} {
		c := DefaultConfig()
		change(&c)
		if err := c.Check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s…", err, want)
		}
	}
}

// A configuration is kept in model and report with the keys of train.yaml.
func TestConfigJSON(t *testing.T) {
	c := DefaultConfig()
	c.Window.Hop = 500 * time.Millisecond
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"window":{"hop":"500ms","length":"1s"}`, `"label":{"vb_max_um":300,"states":["chipped","broken"]}`,
		`"evaluate":{"by_tool":"leave-one-out","random_split":true}`, `"reference":{"windows":10,"mode":"auto"}`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
}

// An error in a file names the line.
func TestLoadConfigNamesTheLine(t *testing.T) {
	t.Chdir(t.TempDir())
	for text, want := range map[string]string{
		"network:\n  pretrain:\n    epochs: 5\n    sparsity: 1.5\n": "train.yaml:4: network: pretrain: sparsity: ",
		"reference: {windows: 0}\n":                                 "train.yaml:1: reference: 0 windows",
		"network:\n  fine_tune: {optimiser: sgd}\n":                 "train.yaml:2: unknown key `optimiser`",
		"network:\n  pretrain: {persistent: often}\n":               "train.yaml:2: `pretrain: {persistent: often}`: must be true or false",
	} {
		if err := os.WriteFile("train.yaml", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadConfig("train.yaml"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s…", text, err, want)
		}
	}
}

// Every key of the network and the costs trains another model, which is one:
// its golden vectors hold, and it ranks the windows it was trained on.
func TestEveryKeyCounts(t *testing.T) {
	base := latheJob(t)
	base.Config.Network = networkConfig{Hidden: []int{6}, Pretrain: dbn.PretrainSettings{Epochs: 6}}
	base.Config.Network.FineTune.Epochs = 25
	base.Config.Costs.Folds, base.Config.Costs.JADE.Generations = 2, 40
	base.Config.Evaluate = Evaluate{ByTool: "off"}
	fit := func(why string, change func(*Config)) string {
		j := base
		change(&j.Config)
		m, r, err := Run(t.Context(), j)
		if err != nil {
			t.Fatalf("%s: %v", why, err)
		}
		if !(r.Fit.Training.AUC > 0.8) {
			t.Errorf("%s: AUC %v on training rows", why, r.Fit.Training.AUC)
		}
		b, err := m.Classifier.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + string(r.Fit.Costs.Search.Variant)
	}
	seen := map[string]string{}
	for why, change := range map[string]func(*Config){
		"defaults":          func(*Config) {},
		"steps: 3":          func(c *Config) { c.Network.Pretrain.Steps = 3 },
		"persistent: true":  func(c *Config) { c.Network.Pretrain.Persistent = true },
		"pretrain momentum": func(c *Config) { c.Network.Pretrain.Momentum = -1 },
		"sparsity: 0.1":     func(c *Config) { c.Network.Pretrain.Sparsity = 0.1 },
		"sparsity_cost: 5":  func(c *Config) { c.Network.Pretrain.Sparsity, c.Network.Pretrain.SparsityCost = 0.1, 5 },
		"optimizer: sgd":    func(c *Config) { c.Network.FineTune.Method = "sgd" },
		"momentum of sgd":   func(c *Config) { c.Network.FineTune.Method, c.Network.FineTune.Momentum = "sgd", 0.5 },
		"early_stopping":    func(c *Config) { c.Network.FineTune.EarlyStopping = true },
		"posteriors":        func(c *Config) { c.Costs.Posteriors = classify.Training },
		"metric: mcc":       func(c *Config) { c.Costs.Metric = score.MCC },
		"fitness: raw":      func(c *Config) { c.Costs.Fitness = classify.Raw },
		"search: paper":     func(c *Config) { c.Costs.Search = jade.Paper },
		"search: literal":   func(c *Config) { c.Costs.Search = jade.Literal },
	} {
		got := fit(why, change)
		if other, twice := seen[got]; twice {
			t.Errorf("%s trains the model that %s does", why, other)
		}
		seen[got] = why
	}
	// What is the default is the same when it is named.
	named := fit("named defaults", func(c *Config) {
		c.Network.Pretrain.Steps, c.Network.Pretrain.Momentum = 1, 0.9
		c.Network.FineTune.Method = "adam"
		c.Costs = classify.CostSettings{Posteriors: classify.OutOfFold, Folds: 2, Fitness: classify.Smoothed, Search: jade.Published}
	})
	if seen[named] != "defaults" {
		t.Errorf("defaults that are named train %q", seen[named])
	}
}

// docs/reference/training.md names every key, and no other.
func TestDocsNameEveryKey(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/training.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, keys []string
	for _, k := range reference.Keys(DefaultConfig(), nil) {
		keys = append(keys, k.Name)
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_.\\[\\]]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, m[1])
	}
	slices.Sort(documented)
	slices.Sort(keys)
	if !slices.Equal(documented, keys) {
		t.Errorf("documented are\n%v\nthere are\n%v", documented, keys)
	}
}

// Patience ends fine-tuning earlier.
func TestPatience(t *testing.T) {
	j := latheJob(t)
	j.Config.Network = networkConfig{
		Hidden: []int{4}, Pretrain: dbn.PretrainSettings{Epochs: -1},
		FineTune: fineTuneConfig{FineTuneSettings: dbn.FineTuneSettings{Epochs: 300, Rate: 0.05, Patience: 2}, EarlyStopping: true},
	}
	j.Config.Costs.Posteriors = classify.Training
	j.Config.Evaluate = Evaluate{ByTool: "off"}
	_, r, err := Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	h := r.Fit.History
	if n := len(h.Validation); n != h.Kept+2 || n >= 300 {
		t.Errorf("ended after %d epochs, the best was %d; want 2 between them", n, h.Kept)
	}
}
