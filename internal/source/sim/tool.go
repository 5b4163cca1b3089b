package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/config"
)

// The ways in which a tool ends.
const (
	Worn    = "worn"    // flank wear passed the limit
	Chipped = "chipped" // a piece of the cutting edge broke out
	Broken  = "broken"  // the tool broke
)

// Healthy is the state of a tool before its end.
const Healthy = "healthy"

// Tool is one gun drill and its fate.
type Tool struct {
	Name       string        // identity, for example "T08"
	Geometry   string        // as in the experiment: length, nose grind, radius, such as "1450mm_N8_R9"
	DiameterMM float64       // of the hole
	SpeedRPM   float64       // of the spindle
	FeedUM     float64       // µm per revolution
	End        string        // Worn, Chipped or Broken
	Life       time.Duration // cutting time after which the tool is taken out
	Used       float64       // share of Life that it has cut before, in whole holes; 0 for a new tool
	Seed       uint64        // of everything by which tools of one kind differ
}

// conditions is table "experimental_conditions" of the paper: 20 inserts, 6
// geometries. The table's names count by material and batch; ours count through.
var conditions = []struct {
	count    int
	geometry string
	diameter float64
	speed    float64
	feed     float64
}{
	{2, "1450mm_N4_R9", 8.05, 1200, 20},  // H1_01, H1_02
	{2, "1450mm_N4_R1", 8.05, 800, 20},   // H2_01, H2_02
	{1, "1650mm_N8_R1", 8.02, 1650, 16},  // H2_03
	{5, "1450mm_N8_R9", 8.05, 1650, 16},  // H3_01 … H3_05
	{4, "1650mm_N8_R9", 8.02, 1650, 16},  // H3_06 … H3_09
	{1, "1650mm_N8_R1", 8.02, 1650, 16},  // H3_10
	{3, "1219mm_N8_R9", 8.08, 1650, 16},  // H4_01 … H4_03
	{2, "1450mm_N8_R9", 8.045, 1650, 16}, // H5_01, H5_02
}

// Tools returns the 20 tools of the experiment, T01 to T20, under its conditions:
// 11 end worn, 6 chipped and 3 broken. Which ones is not published and drawn from
// the seed, and so is the life of each, between 0.7 and 1.3 times the given one
// (assumed).
func Tools(seed uint64, life time.Duration) []Tool {
	rng := rand.New(rand.NewPCG(seed, 0x746f6f6c73))
	ends := slices.Concat(slices.Repeat([]string{Worn}, 11), slices.Repeat([]string{Chipped}, 6), slices.Repeat([]string{Broken}, 3))
	rng.Shuffle(len(ends), func(i, j int) { ends[i], ends[j] = ends[j], ends[i] })
	var tools []Tool
	for _, c := range conditions {
		for range c.count {
			n := len(tools)
			tools = append(tools, Tool{
				Name: fmt.Sprintf("T%02d", n+1), Geometry: c.geometry,
				DiameterMM: c.diameter, SpeedRPM: c.speed, FeedUM: c.feed,
				End:  ends[n],
				Life: time.Duration(float64(life) * (0.7 + 0.6*rng.Float64())).Round(frame),
				Seed: rng.Uint64(),
			})
		}
	}
	return tools
}

func (t *Tool) check() error {
	return cmp.Or(
		config.Wrong(t.Name == "", "has no name"),
		config.Wrong(!(t.DiameterMM >= 1 && t.DiameterMM <= 50), "diameter %v mm: must be between 1 and 50", t.DiameterMM),
		config.Wrong(!(t.SpeedRPM >= 60 && t.SpeedRPM < 60/frame.Seconds()), "speed %v rev/min: must be at least 60 and less than 6000", t.SpeedRPM), // less than a revolution a frame
		config.Wrong(!(t.FeedUM >= 1 && t.FeedUM <= 500), "feed %v µm/rev: must be between 1 and 500", t.FeedUM),
		config.Wrong(t.End != Worn && t.End != Chipped && t.End != Broken, "end %q is not one of %s, %s, %s", t.End, Worn, Chipped, Broken),
		config.Wrong(!(t.Used >= 0 && t.Used < 1), "%v of its life used: must be from 0 to below 1", t.Used),
		config.Wrong(t.Life < time.Second, "life %v: must be a second of cutting or more", t.Life))
}

// lengthM returns the length of the drill in m, which Geometry starts with;
// 1.45 m if it does not.
func (t *Tool) lengthM() float64 {
	var mm float64
	if _, err := fmt.Sscanf(t.Geometry, "%fmm", &mm); err != nil || mm < 100 {
		mm = 1450
	}
	return mm / 1000
}

// holeTime returns the time to drill holeDepthMM at the tool's speed and feed:
// 113.64 s at 1650 rev/min and 16 µm/rev, as in the paper.
func (t *Tool) holeTime() time.Duration {
	return time.Duration(holeDepthMM / (t.FeedUM / 1000 * t.SpeedRPM) * float64(time.Minute))
}
