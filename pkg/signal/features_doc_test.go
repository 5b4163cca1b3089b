package signal

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/testkit/golden"
)

// docs/reference/features.md is made from the registry: go test ./pkg/signal -run Document -update.
func TestFeatureDocumentIsCurrent(t *testing.T) {
	golden.Check(t, filepath.Join("..", "..", "..", "docs", "reference", "features.md"), featureDocument())
}

func featureDocument() string {
	var b strings.Builder
	b.WriteString(`# Features

<!-- Made by pkg/signal from its registry: go test ./pkg/signal -run Document -update -->

A model's feature list has a version, which fixes every formula and the default set. This is version 2, the only one that
programs compute. ` + "`features.set`" + ` in a training configuration names the families
to compute; without it the default set is. A feature is named channel, dot, name: ` + "`ch01.kurtosis`" + `.
Features are in the order of the channels and, of one channel, in the order of the table. The default set of every window is on
` + "`tcm.features.v1`" + ` ([features.arrow.md](../../schemas/features.arrow.md)), for models and for other programs.

Every formula is held to NumPy, SciPy and PyWavelets to 1e-9 relative in float64, and in the float32 of the fast path to 1e-5 of
the feature's scale (` + "`make peers-signal`" + `). In float32, what lies 100 dB below the strongest line is lost.

With ` + "`reference.mode: kind`" + `, a feature x is compared with what it was in the tool's first windows, r, by its difference x − r
or by its log ratio ln(x/r), as the table says: what is positive and has a true zero by the latter. A channel of kind ` + "`feature`" + ` is compared by
its ratio x/|r| − sign(r).

U stands for the unit of the channel, x for its n samples in the window, x̄ for their mean, P for the power spectrum, E for the
spectrum of the squared envelope, f for frequency.

| family | features | unit | formula | to its reference | source |
|---|---|---|---|---|---|
`)
	for i := range registry {
		e := &registry[i]
		names := e.name
		if e.several != nil {
			s := newShape(20_000)
			m := newMeasures(&s, 20_000)
			n := e.several(&m)
			names = fmt.Sprintf("%s01 … %s%02d", e.suffix, e.suffix, n)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", e.name, names, e.unit, strings.ReplaceAll(e.formula, "|", "\\|"), e.relation(), e.source)
	}
	fmt.Fprintf(&b, `
## Spectra

They need %d samples a window; channels with fewer go without.

- **P** is Welch's: segments of N samples, each half over the next, less the mean of the window, times the periodic Hann window. N
  is the greatest power of two up to n/4, at least %d and at most %d: at 20 kHz bins of 4.9 Hz. P[k] is the mean square of the
  samples in the bin at k·rate/N, k = 1 … N/2.
- **Bands** are ⅔ of an octave wide, counted down from half the rate, ten at most: at 20 kHz up to 156, 244, 391, 625, 991, 1572,
  2500, 3965, 6299 and 10,000 Hz.
- **E** is of the resonance band, the octave from rate/8 to rate/4: 2.5 to 5 kHz at 20 kHz. The band's bins of a segment alone,
  shifted to zero, are transformed back to N/4 points z; E is the sum over the segments of the squared absolute value of the
  transform of |z|². Its bins are as wide as the bins of P; bins below q = %d belong to the Hann window.
- **Packets** are the %d nodes of four levels of the wavelet packet transform by the Daubechies wavelet with four vanishing moments
  (PyWavelets' db4, mode periodization), in order of frequency.
- **Spindle**: harmonics follow the speed that comes with the samples. Below three bins, 15 Hz or 880 rev/min at 20 kHz,
  neighbouring harmonics share bins.

## Missing samples

They are left out of sums, and count as the mean in spectra and packets, whose power is divided by the share that is there. A
feature without a value is missing itself: of a channel without samples or with an infinite one; what divides by the movement of
a channel that does not move; what follows the spindle while its speed is not known.

## Default set

| channel | families |
|---|---|
`, MinSpectral, MinSpectral, maxWelch, minEnvelope, packetCount)
	for _, row := range []struct {
		channel string
		kind    Kind
		samples int
	}{
		{"a single sample", Force, 1}, {fmt.Sprintf("fewer than %d samples", MinSpectral), Force, 2},
		{"vibration, acoustic", Vibration, 20_000}, {"others", Force, 100}, {fmt.Sprintf("others, from %d samples on", manySamples), Force, manySamples},
	} {
		fmt.Fprintf(&b, "| %s | %s |\n", row.channel, strings.Join(defaultSet(row.kind, row.samples), ", "))
	}
	b.WriteString("\nA channel of kind `feature` has one feature, its value, or the mean if a window holds several.\n")
	b.WriteString(`
## What they are worth

By default each feature is taken relative to its reference in its own way. On the simulated drill, 20 tools of each of four seeds, a fifth
of the tools held out at a time, an ECS-DBN (costs from two folds) reaches

| features | reference | G-mean by seed | mean | AUC by seed | mean |
|---:|---|---|---:|---|---:|
| 671 | difference | 0.958 0.982 0.973 0.980 | 0.9733 | 0.9744 0.9965 0.9911 0.9955 | 0.9894 |
| 671 | kind | 0.958 0.988 0.971 0.978 | 0.9738 | 0.9956 0.9994 0.9933 0.9980 | 0.9966 |

up to rounding what ` + "`go run -C bench ./simulator -compare 4`" + ` prints (references were in float64 here). One faulty window moves a G-mean by 0.004, so there both are alike; the AUC, which rests on no
threshold, is best for the default in every seed. With one tool left out at a time and costs from five folds, seeds 1 and 2 give 0.967 and 0.986
(AUC 0.9966 and 0.9989).

Taken by difference they rank windows worse: an impulse factor, a kurtosis or a centroid keeps the scale of its tool and its
heavy tail, and there are many of them. Their plain ratio is better (AUC 0.9940 in the mean), its logarithm best; leaving packets and harmonics
out does not cure that (0.9889 on the first three seeds, by difference, against 0.9873 with them).

## Speed

The default set of a second of the gun drill, 12 × 20,000 and 2 × 100 samples, takes 1.7 ms of one core of an EPYC with AVX-512 (588
times real time); NumPy and SciPy take 53 ms for the same features of the twelve channels, 31 times as long. Medians of 9 rounds in
turn, processor time, on a busy machine: ` + "`make peers-signal-bench`" + `. Up to 16 channels of one rate cost as much as one. A channel with
missing samples is computed alone in float64, which takes 3.5 ms more.

What comes before, slicing the same second, assessing its quality and encoding it as Arrow, takes 1.1 ms: median processor time of 5 rounds of
` + "`go test -run '^$' -bench SliceAndSeal -benchtime 1000x ./pkg/window`" + ` on the same busy machine.
`)
	return b.String()
}
