package imbalance

import (
	"fmt"
	"strings"

	"github.com/flank-tcm/flank/pkg/score"
)

// lead is how far the mean G-mean of some cells is ahead of the mean of others, and the 95 %
// interval of that over groups.
type lead struct {
	ahead float64
	over  [2]score.Figure
}

func (l lead) String() string {
	return strings.ReplaceAll(fmt.Sprintf("%+.3f [%+.3f, %+.3f]", l.ahead, float64(l.over[0]), float64(l.over[1])), "-", "−")
}

// heldOut names a group: the fold that holds it out, and its place in the fold's test part.
type heldOut struct{ fold, place int }

// leads returns, for each pair, how far its first cells are ahead of its second ones. All cells
// must be of the same groups and have Groups. Groups are drawn, the same for all cells, because
// rows of a group resemble each other. A cell of whose fold no group was drawn does not count.
func leads(pairs [][2][]Cell) []lead {
	var groups []heldOut
	once := make(map[heldOut]int)
	for _, c := range pairs[0][0] {
		for k := range c.Groups {
			if g := (heldOut{c.Fold, k}); once[g] == 0 {
				once[g], groups = 1, append(groups, g)
			}
		}
	}
	ahead := func(pair [2][]Cell, times map[heldOut]int) float64 {
		return drawnGMean(pair[0], times) - drawnGMean(pair[1], times)
	}
	over := score.Bootstrap(len(groups), len(pairs), func(drawn []int, figures []float64) {
		times := make(map[heldOut]int)
		for _, i := range drawn {
			times[groups[i]]++
		}
		for i, pair := range pairs {
			figures[i] = ahead(pair, times)
		}
	})
	all := make([]lead, len(pairs))
	for i, pair := range pairs {
		all[i] = lead{ahead(pair, once), over[i]}
	}
	return all
}

// drawnGMean returns the mean of the G-means that cells have on groups, each of which counts so
// many times.
func drawnGMean(cells []Cell, times map[heldOut]int) float64 {
	var all mean
	for _, c := range cells {
		sum := score.NewConfusion(2)
		for k, m := range c.Groups {
			for truth, decided := range m {
				for decision, n := range decided {
					sum[truth][decision] += n * times[heldOut{c.Fold, k}]
				}
			}
		}
		all.add(float64(sum.Summary().GMean))
	}
	return all.value()
}
