// Package classify is the evolutionary cost-sensitive deep belief network
// (ECS-DBN) on matrices: rows in, decisions out. It knows nothing of windows.
//
// A row is one observation, a vector of feature values; NaN is a missing value.
// Its class is an index from 0 to K−1. By convention class 0 is [Healthy], and the
// last one the rare one that matters, the positive class: [Faulty] of two. A
// group names what rows have in common, for example the tool they come from, so
// that rows of one group are never on both sides of a split.
//
// An [Encoder] turns feature values into the values that a network takes. The
// network of pkg/dbn gives the posterior P(y=j|x) of each class. A [CostVector]
// has one cost c_j in [0, 1] for each class; the decision is
//
//	argmax_j (1 − c_j)·P(y=j|x).
//
// [Fit] trains all three: the costs on posteriors of rows which the network
// that gave them was not trained on (out of fold), so that they are not chosen
// on answers known by heart. [CrossValidateTable] says how good that is on rows and
// groups never seen.
//
// Source: C. Zhang, K. C. Tan, H. Li and G. S. Hong, "A Cost-Sensitive Deep
// Belief Network for Imbalanced Classification", IEEE TNNLS 2018, arXiv
// 1804.10801, "the paper" below, which evolves the costs on training posteriors.
package classify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/flank-tcm/flank/pkg/classify/vote"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/jade"
	"github.com/flank-tcm/flank/pkg/score"
)

// The two classes of a tool.
const (
	Healthy = 0
	Faulty  = 1
)

// Errors that callers test for. Those returned wrap them, say where, and what
// to do.
var (
	// ErrSize: rows, labels, groups or a row's width do not agree.
	ErrSize = errors.New("sizes do not agree")
	// ErrNotFinite: a feature is infinite. (NaN is a missing value, no error.)
	ErrNotFinite = errors.New("value is not finite")
	// errClasses: labels do not name two or more classes without a gap.
	errClasses = errors.New("classes cannot be told apart")
	// ErrTooFew: a class has too few rows to be held out.
	ErrTooFew = errors.New("too few rows")
	// ErrSettings: a setting cannot be used.
	ErrSettings = errors.New("unusable setting")
	// ErrCorrupt: bytes are not a classifier that AppendBinary wrote.
	ErrCorrupt = errors.New("not a classifier")
)

// Guard says whether a network is bounded.
type Guard string

// The settings of a guard.
const (
	GuardOff Guard = "off"
	// GuardVote lets the median of models of a sensor or two bound the network, so that one sensor that fails or
	// changes its gain does not turn it over, see package vote.
	GuardVote Guard = "vote"
	// GuardVoteAndGains is GuardVote, and lets steps in the gain of one sensor be taken out of windows, see vote.Guard.Watch.
	GuardVoteAndGains Guard = "vote-and-gains"
)

// Settings says how a classifier is fitted. A zero field takes the default that its
// comment names.
type Settings struct {
	Encoding Encoding // of features; default Standard
	Bins     int      // most bins of a feature, for Bins and Committee only; default defaultBins

	// Network says how networks are trained. Its Visible defaults to what the
	// encoding needs, and must be left to a Committee, whose members differ; its
	// FineTune.Decay to decays, or to more where few groups have rows of some class but
	// the first. The networks of a Committee have one hidden layer of memberUnits and
	// memberPretrain epochs, unless it says more: together they gain nothing
	// from the defaults of one alone. Its Seed, Progress, Checkpoint and
	// Resume are set here and its validation rows must be empty.
	Network dbn.Settings

	// Balance is how much more a row of a rare class counts in the training of
	// networks: (n/n_j)^Balance, n_j of all n rows being of its class. At 0 all rows
	// count alike, at 1 all classes do. Posteriors are as if rows had counted alike
	// all the same, see [dbn.Network.Unweigh], so costs are not moved by it. Default
	// committeeBalance with a Committee, otherwise 0; -1 stands for 0. With it,
	// Network.ClassWeights must be nil.
	Balance float64

	// EarlyStop holds one of stopParts of the groups, or of the rows if they have no
	// groups, out of the training of every network and keeps the weights of the
	// epoch that suits them best, see dbn.FineTuneSettings. It saves time on
	// large tables; on small ones the rows are worth more than the stop.
	EarlyStop bool

	// Stability says whether columns count by how steadily they follow the lives of
	// tools; default stabilityAuto. It takes a Table with groups whose rows are in the order of time.
	Stability Stability

	// Exclude are columns that do not count, because a person knows that they follow
	// something else than wear.
	Exclude []int

	// Transductive lets networks learn from rows without a class of tools that are
	// held out. Scores then say what is reached on tools whose rows are at hand.
	Transductive bool

	ownDecay  bool // Network.FineTune.Decay is the default
	boundWear bool // see settle
	crossing  bool // put rows where wear jumps over the limit, see settle

	keepsHeldOut bool // in Report.HeldOut

	Costs   CostSettings
	Seed    uint64 // of every random draw: equal seeds give equal bytes
	Workers int    // networks trained at the same time; default GOMAXPROCS; never changes a result

	// Keep, if not nil, keeps every network once it is trained, and the states of
	// trainings that take long; those that it has already are not trained again,
	// or not from the beginning. It never changes a result.
	Keep Checkpoints

	// Guard says whether a vote of sensors bounds the network; default GuardOff. It takes a Table with Sensors.
	Guard Guard

	// Shared, if not nil, has the networks of fits before, so that one that would be the same is
	// not trained again. Otherwise each call has one for its folds. It never changes a result.
	Shared *Shared

	// Progress, if not nil, is called as work goes on, by one goroutine at a
	// time, with the phase, "train", and how much of it is done.
	Progress func(phase string, done, total int)

	root uint64 // Seed as the caller gave it, before the folds of CrossValidateTable have their own
}

// CostSettings says how costs are chosen. The zero value is what measured best:
// out of fold, calibrated, smoothed, mixed with the inverse prior. Tags are the
// keys of a configuration file.
type CostSettings struct {
	Posteriors posteriors `yaml:"posteriors" json:"posteriors,omitempty"` // on which costs are chosen; default OutOfFold
	Folds      int        `yaml:"folds" json:"folds,omitempty"`           // out of fold: networks trained to that end; default defaultFolds; fewer if there are fewer groups

	// Uncalibrated leaves posteriors as the network gives them. Otherwise they
	// are brought, for good, to the temperature at which the out-of-fold ones have
	// the least cross-entropy: networks trained to the end are too sure of
	// themselves, and the inverse prior presumes posteriors that are true.
	Uncalibrated bool `yaml:"-" json:"-"`

	Metric  score.Metric `yaml:"metric" json:"metric,omitempty"`   // what to maximise; default score.GMean
	Fitness fitness      `yaml:"fitness" json:"fitness,omitempty"` // the form of the metric; default Smoothed
	Unmixed bool         `yaml:"-" json:"-"`                       // keep the optimum, do not go towards the inverse prior in log weight, as F1 and MCC never do

	// PriorRows is how many rows of the rarest class the inverse prior counts
	// for: with n of them the costs kept are n/(n + PriorRows) of the way from it
	// to the optimum. Default committeePriorRows with a Committee; otherwise 0, which is half-way
	// however many.
	PriorRows int `yaml:"-" json:"-"`

	// Search is the variant of JADE that searches the costs, default jade.Published.
	// For two classes its find is only reported; costs follow the exact sweep.
	Search jade.Variant `yaml:"search" json:"search,omitempty"`
	// JADE holds the other settings of the search. Its Variant and Seed are set
	// here. Unless Fitness is Raw, costs worth trying are put into its Initial.
	JADE jade.Settings `yaml:"-" json:"-"`

	priorAlone bool // see Settings.settle
}

// fitness says which form of the metric the costs maximise.
type fitness string

const (
	// Smoothed adds a small share of the metric of soft decisions.
	Smoothed fitness = "smoothed"
	// Raw is the plain metric, which has plateaus and noise.
	Raw fitness = "raw"
)

// posteriors says where the posteriors come from on which costs are chosen.
type posteriors string

const (
	// OutOfFold posteriors come from networks trained on other groups, or other
	// rows if they have no groups.
	OutOfFold posteriors = "out-of-fold"
	// Training posteriors come from the network itself, as in the paper. They
	// are too good for rows the network knows by heart.
	Training posteriors = "training"
)

// Check reports the first setting that Fit could not use for K classes, before
// it looks at any row. The error wraps ErrSettings and a dbn.SettingError, whose
// key is the setting's path in a training configuration.
func (s Settings) Check(classes int) error {
	s = s.withDefaults()
	if err := s.check(); err != nil {
		return err
	}
	return s.checkFor(classes)
}

// checkFor reports the first setting of networks and costs that cannot be used for
// K classes. Defaults are in place.
func (s Settings) checkFor(classes int) error {
	for _, m := range s.members() {
		err := m.Network.Check(classes)
		var of *dbn.SettingError
		if errors.As(err, &of) {
			return wrong("network."+of.Key, "%w", of.Err)
		}
		if err != nil {
			return fmt.Errorf("classify: %w: %w", ErrSettings, err)
		}
	}
	return s.Costs.check(classes)
}

// wrong returns an error of the setting with the given key.
func wrong(key, format string, args ...any) error {
	return fmt.Errorf("classify: %w: %w", ErrSettings, &dbn.SettingError{Key: key, Err: fmt.Errorf(format, args...)})
}

// members returns the settings of each network that s, whose defaults are in
// place, stands for: one, or as many as a Committee has members.
func (s Settings) members() []Settings {
	if s.Encoding != Committee {
		return []Settings{s}
	}
	all := make([]Settings, len(members))
	for i, e := range members {
		m := s
		m.Encoding, m.Network.Visible = e, e.visible()
		m.Network.FineTune.Decay = cmp.Or(m.Network.FineTune.Decay, decays[e])
		m.Network.Pretrain.Epochs = cmp.Or(m.Network.Pretrain.Epochs, memberPretrain)
		if len(m.Network.Hidden) == 0 {
			m.Network.Hidden = []int{memberUnits}
		}
		all[i] = m
	}
	return all
}

func (s Settings) withDefaults() Settings {
	s.Encoding = cmp.Or(s.Encoding, Standard)
	s.Stability = cmp.Or(s.Stability, stabilityAuto)
	s.Guard = cmp.Or(s.Guard, GuardOff)
	s.Bins = cmp.Or(s.Bins, defaultBins)
	s.Costs.Posteriors = cmp.Or(s.Costs.Posteriors, OutOfFold)
	s.Costs.Folds = cmp.Or(s.Costs.Folds, defaultFolds)
	s.Workers = cmp.Or(s.Workers, runtime.GOMAXPROCS(0))
	if s.Encoding == Committee {
		s.Costs.PriorRows = cmp.Or(s.Costs.PriorRows, committeePriorRows)
		if s.Network.ClassWeights == nil {
			s.Balance = cmp.Or(s.Balance, committeeBalance)
		}
	} else {
		s.Network.Visible = cmp.Or(s.Network.Visible, s.Encoding.visible())
		s.ownDecay = s.Network.FineTune.Decay == 0
		s.Network.FineTune.Decay = cmp.Or(s.Network.FineTune.Decay, decays[s.Encoding])
	}
	return s
}

// when returns err if something is wrong. cmp.Or takes the first of several.
func when(is bool, err error) error {
	if !is {
		return nil
	}
	return err
}

// check reports the first setting that cannot be used, but for those that checkFor
// looks at. Defaults are in place.
func (s Settings) check() error {
	return cmp.Or(
		when(s.Balance != -1 && !(s.Balance >= 0 && s.Balance <= 1), wrong("network.fine_tune.balance", "%v: must be from 0, all rows count alike, to 1, all classes do, or -1 for 0", s.Balance)),
		when(s.Balance > 0 && s.Network.ClassWeights != nil, wrong("network.class_weights", "there is a balance of %v too: give one of them", s.Balance)),
		when(s.Encoding == Committee && s.Network.Visible != "", wrong("network.visible", "%q: the members of a committee need different ones, leave them to it", s.Network.Visible)),
		when(!s.Encoding.known(), wrong("network.encoding", "%q: must be one of %v", s.Encoding, encodings)),
		when(s.Stability != stabilityAuto && s.Stability != StabilityOff, wrong("stability", "%q: must be %q or %q", s.Stability, stabilityAuto, StabilityOff)),
		when(s.Guard != GuardOff && s.Guard != GuardVote && s.Guard != GuardVoteAndGains, wrong("guard", "%q: must be %q, %q or %q", s.Guard, GuardVoteAndGains, GuardVote, GuardOff)),
		when(s.Bins < 1 || s.Bins > maxBins, wrong("network.bins", "%d: must be from 1 to %d", s.Bins, maxBins)),
		when(s.Workers < 1, wrong("workers", "%d: must be positive", s.Workers)),
		when(s.Network.Pretrain.Validation.Rows > 0 || s.Network.FineTune.Validation.Rows > 0, wrong("network.validation", "folds encode their own rows: leave them empty and ask for EarlyStop")))
}

// Classifier decides which class a row belongs to. It never changes once
// fitted, so any number of goroutines may use it; each needs its own Scorer.
// The zero value is only good for UnmarshalBinary.
type Classifier struct {
	encoder *Encoder
	network *dbn.Network
	costs   CostVector
	guard   *vote.Guard // nil without one
}

// Columns returns the number of features of a row.
func (c *Classifier) Columns() int { return c.encoder.Columns() }

// Classes returns the number K of classes.
func (c *Classifier) Classes() int { return len(c.costs) }

// Costs returns the costs that decisions are made with. The caller must not
// change them.
func (c *Classifier) Costs() CostVector { return c.costs }

// Encoder returns what features are encoded by.
func (c *Classifier) Encoder() *Encoder { return c.encoder }

// Network returns the network that the encoded features go into.
func (c *Classifier) Network() *dbn.Network { return c.network }

// Decide returns the class of a row with the given posterior, see
// [CostVector.Decide].
func (c *Classifier) Decide(posterior []float64) int { return c.costs.Decide(posterior) }

// Score returns how much speaks against the first class, see [CostVector.Score].
func (c *Classifier) Score(posterior []float64) float64 { return c.costs.Score(posterior) }

// Guard returns what bounds the network, nil if nothing does. Where there is one, it has a
// part in every posterior: the network alone says something else.
func (c *Classifier) Guard() *vote.Guard { return c.guard }

// Scorer computes posteriors row by row without allocating. It is not safe for
// concurrent use; several scorers of one classifier are.
type Scorer struct {
	encoder   *Encoder
	network   *dbn.Scorer
	inputs    []float32
	posterior []float64
	costs     CostVector
	guard     *vote.Scorer // nil without a guard
	disagrees int          // sensor of the guard
}

// NewScorer returns a Scorer with its own scratch memory.
func (c *Classifier) NewScorer() *Scorer {
	s := &Scorer{
		encoder:   c.encoder,
		network:   c.network.NewScorer(),
		inputs:    make([]float32, c.encoder.Inputs()),
		posterior: make([]float64, c.network.Classes()),
		costs:     c.costs,
	}
	if c.guard != nil {
		s.guard = c.guard.NewScorer()
	}
	return s
}

// Posterior returns P(y=j|row) for each class j, valid until the next call. A
// NaN in row is a missing value and an infinity as large as any other value
// beyond the training rows. It panics if row is not as long as the classifier
// has columns.
func (s *Scorer) Posterior(row []float32) []float64 {
	s.encoder.EncodeTo(s.inputs, row)
	return s.bounded(s.network.Posterior(s.inputs), row)
}

// Disagrees returns the index in vote.Guard.Sensors of the sensor that disagrees with the others in the
// row that was scored last, see vote.Judgement.Sensor. It is -1 if all agree, and of a classifier without a guard.
func (s *Scorer) Disagrees() int { return s.disagrees }

// bounded returns the network's posterior of a row as the guard, if there is one, bounds it. Where all
// experts abstain it is the network's.
func (s *Scorer) bounded(network, row []float32) []float64 {
	for j, p := range network {
		s.posterior[j] = float64(p)
	}
	if s.disagrees = -1; s.guard != nil {
		j := s.guard.Judge(row, s.costs.Score(s.posterior))
		if s.disagrees = j.Sensor; j.Voting > 0 {
			s.costs.set(s.posterior, j.Margin)
		}
	}
	return s.posterior
}

// checkData reports rows that cannot be fitted to. Groups may be nil. It
// returns the number K of classes.
func checkData(x dbn.Rows, y []int, groups []string) (int, error) {
	rows, cols := x.Shape()
	m, inMemory := x.(dbn.Matrix)
	err := cmp.Or(
		when(rows < 1 || cols < 1, fmt.Errorf("classify: %d rows of %d features: %w: there is nothing to fit", rows, cols, ErrSize)),
		when(inMemory && len(m.Data) != rows*cols, fmt.Errorf("classify: %d values for %d rows of %d features: %w", len(m.Data), rows, cols, ErrSize)),
		when(len(y) != rows, fmt.Errorf("classify: %d labels for %d rows: %w: give each row one", len(y), rows, ErrSize)),
		when(groups != nil && len(groups) != rows, fmt.Errorf("classify: %d groups for %d rows: %w: give each row one, or none at all", len(groups), rows, ErrSize)))
	if err == nil {
		err = checkValues(x)
	}
	if err != nil {
		return 0, err
	}
	return checkLabels(y)
}

// checkLabels reports labels that do not number two classes or more without gaps. It returns how many there are.
func checkLabels(y []int) (int, error) {
	for i, label := range y {
		if label < 0 || label >= maxClasses {
			return 0, fmt.Errorf("classify: row %d: label %d: %w: number them from 0 to at most %d", i, label, errClasses, maxClasses-1)
		}
	}
	counts := countClasses(y)
	if last := len(counts) - 1; counts[last] == len(y) {
		return 0, fmt.Errorf("classify: all %d rows are of class %d: %w: add rows of another, or check the rule that labels them", len(y), last, errClasses)
	}
	for j, n := range counts {
		if n == 0 {
			return 0, fmt.Errorf("classify: class %d has no rows, but class %d has: %w: number classes without gaps", j, len(counts)-1, errClasses)
		}
	}
	return len(counts), nil
}

const maxClasses = 1 << 12

// countClasses returns how many rows each class has, up to the highest label.
func countClasses(y []int) []int {
	var counts []int
	for _, label := range y {
		for label >= len(counts) {
			counts = append(counts, 0)
		}
		counts[label]++
	}
	return counts
}

// DeriveSeed returns seed number i that follows from seed: the finalizer of
// SplitMix64 on the i-th state. (G. Steele, D. Lea and C. Flood, "Fast
// Splittable Pseudorandom Number Generators", OOPSLA 2014.)
func DeriveSeed(seed, i uint64) uint64 {
	z := seed + (i+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// parallel calls do(ctx, i) for every i in [0, n) on up to the given number of
// goroutines. An error ends the calls of higher i, and of no lower one: so the error
// that it returns, the one of the lowest i, does not depend on the workers.
func parallel(ctx context.Context, n, workers int, do func(ctx context.Context, i int) error) error {
	if workers == 1 {
		for i := range n {
			if err := do(ctx, i); err != nil {
				return err
			}
		}
		return nil
	}
	errs := make([]error, n)
	ctxs, cancels := make([]context.Context, n), make([]context.CancelFunc, n)
	for i := range n {
		ctxs[i], cancels[i] = context.WithCancel(ctx)
		defer cancels[i]()
	}
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(workers, n) {
		wg.Go(func() {
			for i := range next {
				if errs[i] = do(ctxs[i], i); errs[i] != nil {
					for _, cancel := range cancels[i+1:] {
						cancel()
					}
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
