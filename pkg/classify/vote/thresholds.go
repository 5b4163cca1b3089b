package vote

// What a guard goes by. Behind each number: its unit, and the page of docs/algorithm that says it, in these words; package
// classify compares them. Above it: where it was measured, if it was.
const (
	// ClipOdds bounds the log odds of an expert, so that none counts for more than being nearly sure, and ClipInput its
	// standardised inputs.
	ClipOdds  = 6 // log odds; guard.md: "each within ±6"
	ClipInput = 5 // standard deviations; guard.md: "clip((x_j − μ_j)/σ_j, ±5)"
	// defaultBound is c, how far the guarded margin may be from the vote's. At 0.3, 0.4 and 0.6
	// the turning tools' G-mean is 0.982, 0.982, 0.983 on clean windows, 0.920, 0.912, 0.889 if the
	// gain of one sensor is wrong and 0.923, 0.928, 0.934 if all forces' are (TestRecordedTurning).
	defaultBound = 0.4 // log odds; guard.md: "clip(m_network − v + c_v, ±0.4)"

	// A sensor is to be reported if [Judgement].Sensor names it in NamedIn of any NamedOf
	// windows in a row. In training tools, which were held out for that, none was.
	NamedIn = 5 // windows
	NamedOf = 8 // windows
	// leastOthers is how many experts of other sensors it takes for one to be compared with them.
	leastOthers = 3 // experts
	// thresholdMargin is what thresholds are of what experts differ by for long in training tools, see margin.
	thresholdMargin = 1.3 // times
	// scarceTools is how many tools' worth a margin grows by where they are few.
	scarceTools = 4 // tools; guard.md: "1 + 4/n"

	// leastWorn must have worn rows: with fewer the vote has no cut. Of fewer than leastExperts, no median is safe from one.
	leastWorn    = 3 // tools
	leastExperts = 3 // experts
	// leastCorrelation is from which correlation of their changes on two sensors are one.
	leastCorrelation = 0.95 // correlation; guard.md: "a correlation of 0.95 or more"
	// inverseDecay is C: the loss of an expert is the sum over rows of the mean log loss over levels + |b|²/(2C).
	inverseDecay = 0.1 // 1/weight²; guard.md: "with C = 0.1"
	// inputColumns is how many columns of weight 1 the weighted ones count for together.
	inputColumns = 48 // columns; guard.md: "√(48/Σw²)"
	// deals is how often the vote's cut is looked for, with other healthy tools held out.
	deals = 3 // times; guard.md: "dealt to the folds, three times"
	// sure is the least probability of a class that the cut is chosen with.
	sure = 2e-3 // probability

	// A gain that steps, as of a clamp that is torqued again or of an amplifier that is changed, differs from wear in three things:
	// it comes from one window to the next, all sizes of the sensor have it alike, and no other sensor moves. The medians of
	// newWindows and of oldWindows before them are compared.
	newWindows  = 3                       // windows; guard.md: "medians of 3 and 5"
	oldWindows  = 5                       // windows; guard.md: "medians of 3 and 5"
	stepWindows = newWindows + oldWindows // windows; guard.md: "in the eight windows before"
	// Sizes of a sensor of which steps are looked for: RMS, Mean and Max of three axes.
	leastSizes = 2   // columns; guard.md: "two to nine"
	mostSizes  = 9   // columns; guard.md: "two to nine"
	leastStep  = 0.1 // of a gain, a logarithm; guard.md: "max(0.1, a·N, 5·σ_s)"
	// mostWear makes the two steps differ by which a gain begins and ends.
	mostWear = 0.2 // of a gain, a logarithm; guard.md: "and less than 0.2: wear goes on"
	// naturalMargin is of the largest step that a tool of the training has by nature, see margin; noiseMargin of the noise of a step.
	naturalMargin = 1.5 // times; guard.md: "a = max(1.5, 1 + 4/n)"
	noiseMargin   = 5   // standard deviations; guard.md: "5·σ_s"
	// alike is by how much the steps of the sizes of one sensor may differ.
	alike = 0.15 // of a gain, a logarithm; guard.md: "within 0.15 of each other"
	// noiseWindows are what the noise is the mean of.
	noiseWindows = 20 // windows; guard.md: "over 20: medians"
	// longGap is of windows without a value, after which nothing before says what the sensor should read.
	longGap = 10 // windows; guard.md: "ten in a row are a new beginning"
	// leastLooked is how many sensors it takes: of fewer, none says that the process has changed.
	leastLooked = 3 // sensors

	// stuckWindows is how many windows in a row of the same values say that a sensor is stuck. The last bit of a converter has
	// noise, so they are the same within stillShare of the least change over as many windows in the training, and mostStill of themselves.
	stuckWindows = 3       // windows; guard.md: "in any three windows of the training"
	stillShare   = 1.0 / 8 // share; guard.md: "an eighth of the least change"
	mostStill    = 5e-4    // share; guard.md: "within 0.05 % of the first"
	// repeatingTools is from which share of the tools of the training on a sensor repeats itself by nature, as
	// one of coarse steps does.
	repeatingTools = 0.25 // share; guard.md: "in a quarter of the training tools"
)
