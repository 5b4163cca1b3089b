//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// newTraining makes a task of "train pretrain|finetune rows inputs hidden batch
// workers trials": the best of so many epochs of CD-1, or of fine-tuning with Adam
// a network for two classes. Training is held up between two epochs until the next
// is asked for.
func newTraining(words []string) (task, error) {
	var phase string
	var rows, inputs, hidden, batch, workers, trials int
	if _, err := fmt.Sscan(strings.Join(words, " "), &phase, &rows, &inputs, &hidden, &batch, &workers, &trials); err != nil {
		return nil, err
	}
	x, y := dbn.NewMatrix(rows, inputs), make([]int, rows)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range x.Data {
		x.Data[i] = rng.Float32()
	}
	for i := range y {
		y[i] = rng.IntN(2)
	}
	const forever = 1 << 20
	next, done := make(chan struct{}), make(chan error)
	s := dbn.Settings{
		Hidden: []int{hidden}, Workers: workers,
		Pretrain: dbn.PretrainSettings{Epochs: forever, Batch: batch},
		FineTune: dbn.FineTuneSettings{Epochs: forever, Batch: batch},
		Progress: func(string, int, int) {
			done <- nil
			<-next
		},
	}
	if phase == "finetune" {
		s.Pretrain.Epochs = -1
	}
	go func() {
		<-next
		_, _, err := dbn.Train(context.Background(), x, y, 2, s)
		done <- err
	}()
	return func() (seconds, error) {
		var err error
		t := best(trials, func() {
			if err == nil {
				next <- struct{}{}
				err = <-done
			}
		})
		return t, err
	}, nil
}
