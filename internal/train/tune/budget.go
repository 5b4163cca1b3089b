package tune

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/config"
)

// budget is how many false alarms people put up with in some cutting time, or in all of
// the data if Per is 0.
type budget struct {
	Alarms float64
	Per    time.Duration
}

// ParseBudget reads a budget, such as "1 per 8h", "0.5 per 1h30m" or "1": a number of
// false alarms, which may be 0, and the cutting time for it, of a second at least.
func ParseBudget(s string) (budget, error) {
	wrong := func(why string) (budget, error) {
		return budget{}, fmt.Errorf("budget %.60q: %s: write false alarms and the cutting time for them, such as \"1 per 8h\" or \"0.5 per 1h30m\", or a number of false alarms in all of the data, such as \"1\"", s, why)
	}
	words := strings.Fields(s)
	if len(words) != 1 && (len(words) != 3 || words[1] != "per") {
		return wrong("expected three words, the second of them \"per\"")
	}
	n, err := strconv.ParseFloat(words[0], 64)
	if err != nil && len(words) == 1 {
		return wrong("expected three words, the second of them \"per\", or a number")
	}
	if err != nil || !(n >= 0 && n <= 1e6) {
		return wrong(fmt.Sprintf("%.20q is not a number of alarms between 0 and a million", words[0]))
	}
	if len(words) == 1 {
		return budget{Alarms: n}, nil
	}
	per, err := time.ParseDuration(words[2])
	if err != nil || per < time.Second || per > 10000*time.Hour {
		return wrong(fmt.Sprintf("%.20q is not a time between 1s and 10000h", words[2]))
	}
	return budget{Alarms: n, Per: per}, nil
}

// Rate returns the false alarms per cutting hour that the budget allows. The budget must
// be of some cutting time.
func (b budget) Rate() float64 { return b.Alarms / b.Per.Hours() }

func (b budget) String() string {
	if b.Per == 0 {
		return strconv.FormatFloat(b.Alarms, 'g', -1, 64)
	}
	return strconv.FormatFloat(b.Alarms, 'g', -1, 64) + " per " + config.Duration(b.Per)
}

// confidence is the level of all intervals, as of score.RateInterval.
const confidence = 0.95

// hoursFor returns the cutting hours without a single false alarm after which a
// rate is known to be at most the given one, with 95 %.
func hoursFor(rate float64) float64 { return -math.Log(1-confidence) / rate }
