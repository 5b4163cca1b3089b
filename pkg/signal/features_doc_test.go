package signal

import (
	"fmt"
	"path/filepath"
	"slices"
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

The version of a model's feature list, 2, fixes every formula and the default set. ` + "`features.set`" + ` in ` + "`train.yaml`" + ` names other families. A feature is named ` + "`ch01.kurtosis`" + `. Features are in the order of the channels and, of one channel, in the order of the table. The default set of every window is on
` + "`tcm.features.v1`" + ` ([features.arrow.md](../../schemas/features.arrow.md)).

Every formula is held to NumPy, SciPy and PyWavelets to 1e-9 relative in float64, and in the float32 of the fast path to 1e-5 of
the feature's scale (` + "`make peers-signal`" + `). In float32, what lies 100 dB below the strongest line is lost. What features are worth, and how long they take: [figures](../figures/features.md).

With ` + "`reference.mode: kind`" + ` a feature is compared with [its reference](../algorithm/inputs.md#1-reference) as the column says: by the log ratio if it is positive and has a true zero, else by the difference.

U is the unit of the channel, x its n samples in the window, x̄ their mean, P the power spectrum, E the
spectrum of the squared envelope, f frequency. Numbers in brackets name the [sources](#sources).

| family | unit | formula | to its reference | source |
|---|---|---|---|---|
`)
	var sources []string
	for i := range registry {
		e := &registry[i]
		if !slices.Contains(sources, e.source) {
			sources = append(sources, e.source)
		}
		names := ""
		if e.several != nil {
			s := newShape(20_000)
			m := newMeasures(&s, 20_000)
			n := e.several(&m)
			names = fmt.Sprintf(": %s01 … %s%02d", e.suffix, e.suffix, n)
		}
		fmt.Fprintf(&b, "| `%s`%s | %s | %s | %s | [%d] |\n", e.name, names, e.unit, strings.ReplaceAll(e.formula, "|", "\\|"), e.relation(), slices.Index(sources, e.source)+1)
	}
	fmt.Fprintf(&b, `
## Spectra

They need %d samples a window; channels with fewer go without.

- **P** is Welch's: segments of N samples, each half over the next, less the mean of the window, times the periodic Hann window. N
  is the greatest power of two up to n/4, from %d to %d: at 20 kHz bins of 4.9 Hz. P[k] is the mean square in the bin at k·rate/N, k = 1 … N/2.
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
feature is missing itself if its channel has no sample or an infinite one, if it divides by the movement of
a channel that does not move, or if it follows a spindle whose speed is not known.

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
	b.WriteString("\nA channel of kind `feature` has one feature: its value, or the mean if a window holds several.\n\n## Sources\n\n")
	for i, source := range sources {
		fmt.Fprintf(&b, "%d. %s\n", i+1, source)
	}
	return b.String()
}
