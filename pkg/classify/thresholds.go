package classify

// What fits decide by. Behind each number: its unit, and the page of docs/algorithm that says it, in these words;
// TestThresholds compares them. Above it: where it was measured, if it was.
const (
	// Defaults of settings.
	defaultBins  = 8  // bins of a feature
	defaultFolds = 10 // folds; costs.md: "in ten folds"

	// What a Committee has instead of the defaults of a network alone.
	memberUnits        = 30  // hidden units
	memberPretrain     = 20  // epochs
	committeePriorRows = 80  // rows; costs.md: "n/(n + 80) of the way"
	committeeBalance   = 0.5 // power of n/n_j; network.md: "½ for the networks of a committee"

	// With three worn tools of the turning recording the choice of a view was wrong three times in ten, and cost more than
	// it gave in the others. LeastViewGroups must have rows of each class but the first.
	LeastViewGroups = 4 // groups; inputs.md: "needs four tools"

	// mostTunedWear is from which on a window says little of where the limit is. Of 1.25, 1.5 and 2 it did best on one labelled turning tool
	// (docs/figures/settings.md).
	mostTunedWear = 1.5 // limits of wear; few-tools.md: "worn beyond 1.5 limits"
	// crossingStep is how far apart windows may be between which a tool passes the limit; where they are further apart, rows
	// are put between them.
	crossingStep = 0.05 // limits of wear; few-tools.md: "v′ − v > 0.05"
	// mostCrossing may have rows of the class for that to be done. On simulated drills rows between gained with one, two, three and
	// six such tools, and lost with sixteen, enough of which pass the limit slowly (docs/figures/settings.md).
	mostCrossing = 6 // groups; few-tools.md: "if six tools or fewer have faulty windows"

	// A tool without labels is healthy at first: that share of its windows, and no more than mostEarly. On the turning tools, which last
	// 90 to 270 windows, 30 are as good as any number tried; on drills of a minute 30 have worn windows among them, and 15 have not.
	earlyShare = 4  // parts of a life; few-tools.md: "min(30, ⌊n/4⌋)"
	mostEarly  = 30 // windows; few-tools.md: "the first min(30,"

	// stopParts has one that is held out to say when to stop.
	stopParts = 5 // parts; network.md: "on a fifth of the groups"

	// Bounds of a temperature. Rows told apart without an error would send it to 0.
	leastTemperature = 0.5 // logs of odds; costs.md: "T in [0.5,"
	mostTemperature  = 50  // logs of odds; costs.md: "T in [0.5, 50]"
	// leastSpread is what log odds must vary by from row to row for out-of-fold costs to make sense. Networks trained at the paper's
	// rate of 0.01, which collapse to the larger class, show 0.01 to 0.3 and differ as much from one to the next; trained well, 0.8 on
	// the hardest of KEEL's problems and 2 to 10 on most.
	leastSpread = 0.25 // logs of odds; costs.md: "vary by less than 0.25 from row"
	// softShare is the share of the soft metric in the smoothed fitness of JADE: enough to show the way on a plateau, too little to
	// buy a wrong decision with among fewer than 10,000 rows.
	softShare = 1e-4 // share; costs.md: "G + 10⁻⁴·G_soft"
	// shareSteps is how finely the shares of a committee's members are looked for. Finer ones gave nothing on the development
	// collection, and coarse ones often leave out a member that is of no use.
	shareSteps = 10 // parts; inputs.md: "Shares are tenths"

	// Above searchedWhole rows of three classes or more, the search sees searchedOfClass of each, evenly spread: its G-mean is
	// within 2e-4 of a search on all rows, less than seeds of the search make.
	searchedWhole   = 1 << 20 // rows
	searchedOfClass = 50_000  // rows
	// encoderRows is what an encoder is fitted to, of rows that are not in memory, in runs of encoderRun.
	encoderRows = 100_000 // rows
	encoderRun  = 16      // rows
)

// decays are the L2 penalties of weights that Network.FineTune.Decay defaults to.
var decays = map[Encoding]float64{Standard: 3e-4, MinMax: 3e-4, NormalScore: 3e-4, Bins: 2e-3}

// few has the decay and the costs where few groups have rows of some class but the first,
// by how many do. They were chosen on all choices of one, two and three labelled tools out of the five
// worn ones of the turning recording, the others without labels (docs/algorithm/few-tools.md).
var few = [...]struct {
	decay float64 // of fine-tuning, for inputs that are not bins; 0: the usual one
	rule  string
}{
	1: {4e-3, "the inverse prior alone, on posteriors as the network gives them: one group has rows of the rarest class, so that none can be held out"},
	2: {3e-3, "half-way to the inverse prior, on posteriors as the network gives them: two groups have rows of the rarest class, too few to calibrate on"},
}
