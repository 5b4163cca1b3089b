// Package deploytest holds models and keys that can be rolled out, for tests.
package deploytest

import (
	"crypto/ed25519"

	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

// TB is the part of testing.TB that is used.
type TB = machinetest.TB

// Prove gives a model golden vectors of one feature, as a trained one has them, and returns
// the bytes of its file. Its seed becomes that number, so that models have ids of their own.
func Prove(t TB, m *model.Model, seed uint64) []byte {
	t.Helper()
	m.Features.Version, m.Provenance.Seed, m.Golden = signal.FeatureVersion, seed, nil
	for _, v := range []float32{0, 0.5, 1, 2} {
		row := make([]float32, m.Classifier.Columns())
		row[0] = v
		m.Golden = append(m.Golden, model.Golden{Features: row, Posterior: append([]float64(nil), m.Classifier.NewScorer().Posterior(row)...)})
	}
	file, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// Key returns a private key, another one for every number.
func Key(n byte) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = n
	return ed25519.NewKeyFromSeed(seed)
}
