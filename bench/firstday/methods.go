package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
	"github.com/flank-tcm/flank/pkg/signal"
)

// A scorer gives a score of each window of a life, greater for a tool that differs more from healthy ones.
type scorer func(l *life) []float64

// method learns a scorer from the healthy parts of lives.
type method struct {
	name  string
	group string // of methods of a kind
	learn func(s *set, p split, taught []*life) scorer
	least []float64 // of settings; a score without a unit of its own has one, −Inf
	share []float64 // likewise
	whole bool      // the scorer counts windows itself: an alarm needs no k of n
}

const (
	ownName     = "Flank"
	cusumName   = "CUSUM of Flank's level"
	rmsGroup    = "limit on the RMS of each channel"
	rmsName     = rmsGroup + ", first tool"
	rmsRelative = "the same, relative to each tool's first windows"
)

var (
	anyScore = []float64{math.Inf(-1)}
	shares   = []float64{0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.75, 2, 2.5, 3, 4, 6, 10}
	peers    = []string{"one-class SVM", "one-class SVM, screened", "isolation forest", "isolation forest, screened"}
)

func methods(said map[string]peerLine) []method {
	least, share := []float64{0.4, 0.5, 0.6, score.LeastDifferent, 0.8}, []float64{score.ShareDifferent, 1, 1.2}
	out := []method{
		{group: ownName, name: ownName, learn: level(sensorsOf), least: least, share: share},
		{group: ownName, name: ownName + ", limit of healthy lives alone", learn: level(sensorsOf), least: anyScore, share: shares},
		{group: ownName, name: ownName + ", all sensors as one", learn: level(asOne), least: least, share: share},
	}
	for _, name := range peers {
		group, _, _ := strings.Cut(name, ",")
		out = append(out, method{name: name, group: group, least: anyScore, share: shares, learn: func(s *set, p split, _ []*life) scorer {
			scores := said[splitKey(s.Name, p.Taught)].Scores[name]
			return func(l *life) []float64 { return scores[l.tool] }
		}})
	}
	out = append(out,
		method{name: rmsName, group: rmsGroup, least: anyScore, share: shares, learn: rms(false)},
		method{name: rmsRelative, group: rmsGroup, least: anyScore, share: shares, learn: rms(true)})
	for _, slack := range []float64{1, 3} {
		out = append(out, method{name: fmt.Sprintf("%s, slack %v σ", cusumName, slack), group: cusumName, least: anyScore, share: shares, whole: true, learn: cusum(slack)})
	}
	return out
}

// relative returns how features are taken relative to the reference, as the healthy parts of lives say which are positive, and what
// each is in nepers.
func relative(s *set, taught []*life) (model.ReferenceSpec, []float64) {
	positive := []byte(strings.Repeat("1", len(s.columns)))
	for _, l := range taught {
		for _, row := range append(l.rows[:l.healthy:l.healthy], l.center) {
			for j, v := range row {
				if v <= 0 {
					positive[j] = '0'
				}
			}
		}
	}
	spec := model.ReferenceSpec{Mode: model.ReferenceLog, Windows: s.Reference, Positive: string(positive)}
	return spec, spec.Nepers(s.judge.Relations(), s.judge.Origins())
}

// level is Flank's: the level of the sensor that follows healthy lives most steadily. Without such a sensor no tool is different.
func level(sensors func([]signal.FeatureOrigin) []score.Sensor) func(*set, split, []*life) scorer {
	return func(s *set, _ split, taught []*life) scorer { return levelOf(s, sensors(s.judge.Origins()), taught) }
}

func levelOf(s *set, sensors []score.Sensor, taught []*life) scorer {
	spec, nepers := relative(s, taught)
	var rows [][]float32
	var lives []score.Life
	for _, l := range taught {
		of := score.Life{Tool: l.tool}
		for _, row := range l.rows[:l.healthy] {
			of.Rows = append(of.Rows, len(rows))
			rows = append(rows, relate(spec, row, l.center))
		}
		lives = append(lives, of)
	}
	followed := score.RankColumns(len(s.columns), func(i int) []float32 { return rows[i] }, lives)
	lead, ok := score.Lead(followed, sensors, nepers)
	return func(l *life) []float64 {
		out := make([]float64, len(l.rows))
		for i, row := range l.rows {
			if ok {
				out[i] = lead.Of(relate(spec, row, l.center))
			}
		}
		return out
	}
}

func relate(spec model.ReferenceSpec, row, center []float32) []float32 {
	out := make([]float32, len(row))
	spec.Relate(out, row, center, nil)
	return out
}

func sensorsOf(origins []signal.FeatureOrigin) []score.Sensor {
	var names []string
	for _, o := range origins {
		names = append(names, o.Sensor)
	}
	return score.Sensors(names)
}

// asOne takes all features for the values of one sensor.
func asOne(origins []signal.FeatureOrigin) []score.Sensor {
	return score.Sensors(make([]string, len(origins)))
}

// rms is what monitors on the market do: each channel's RMS has a limit, the greatest that the first tool reached for 5 of 8
// windows, times a share. The score is the greatest share that a channel has reached. Lives but the first teach nothing.
func rms(ofReference bool) func(*set, split, []*life) scorer {
	return func(s *set, _ split, taught []*life) scorer {
		first := taught[0]
		var at []int
		for j, name := range s.columns {
			if strings.HasSuffix(strings.ToLower(name), "rms") && !slices.ContainsFunc(first.rows, func(row []float32) bool { return row[j] <= 0 }) {
				at = append(at, j)
			}
		}
		value := func(l *life, i, j int) float64 {
			if ofReference {
				return float64(l.rows[i][j]) / float64(l.center[j])
			}
			return float64(l.rows[i][j])
		}
		limits := make([]float64, len(at))
		for k, j := range at {
			values := make([]float64, first.healthy)
			for i := range values {
				values[i] = value(first, i, j)
			}
			limits[k] = score.ReachedLevel(values, 5, 8)
		}
		return func(l *life) []float64 {
			out := make([]float64, len(l.rows))
			for i := range out {
				if l != first && slices.Contains(taught, l) {
					out[i] = math.NaN()
					continue
				}
				for k, j := range at {
					out[i] = max(out[i], value(l, i, j)/limits[k])
				}
			}
			return out
		}
	}
}

// early is how many windows after the reference the noise of a level is taken of.
const early = 20

// cusum is the one-sided cumulative sum of Page (Biometrika 41, 1954, 100–115) of Flank's level: S = max(0, S + x/σ − slack), with σ
// of each healthy life's first windows.
func cusum(slack float64) func(*set, split, []*life) scorer {
	return func(s *set, _ split, taught []*life) scorer {
		of := levelOf(s, sensorsOf(s.judge.Origins()), taught)
		var squares, n float64
		for _, l := range taught {
			values := of(l)
			for _, v := range values[:min(early, l.healthy)] {
				if v == v {
					squares += v * v
					n++
				}
			}
		}
		sd := math.Sqrt(squares / n)
		return func(l *life) []float64 {
			out, sum := of(l), 0.0
			for i, v := range out {
				if v == v && sd > 0 {
					sum = max(0, sum+v/sd-slack)
				}
				out[i] = sum
			}
			return out
		}
	}
}

// setting is what an alarm goes by.
type setting struct {
	k, n         int
	least, share float64
}

func (m *method) settings() []setting {
	counts := [][2]int{{5, 8}, {3, 4}}
	if m.whole {
		counts = [][2]int{{1, 1}}
	}
	var out []setting
	for _, c := range counts {
		for _, least := range m.least {
			for _, share := range m.share {
				out = append(out, setting{c[0], c[1], least, share})
			}
		}
	}
	return out
}

func (t setting) limit(of scorer, taught []*life) float64 {
	var reached []float64
	for _, l := range taught {
		reached = append(reached, score.ReachedLevel(of(l)[:l.healthy], t.k, t.n))
	}
	return score.DifferenceLimit(reached, t.share, t.least)
}
