package mqttconn

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Waits grow with short lives and failures, and end only with a connection that has lasted. A row of
// short lives is an error once from End, and from Err until then.
func TestLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1, 0)
		l := NewLives("flank-7", "stop one of them", func() time.Time { return now })
		row, short, taken := 0, uint64(0), false
		for range rapid.IntRange(0, 30).Draw(t, "lives") {
			if failures, d := row, l.Wait(0); failures == 0 && d != 0 || d > longWait || d < min(firstWait*time.Duration(failures), longWait) || l.Wait(1) < d {
				t.Fatalf("after %d short lives: %v, and %v after a failure", failures, d, l.Wait(1))
			}
			now = now.Add(l.Wait(0))
			life := time.Duration(rapid.SampledFrom([]int{0, 1, 20, 29, 30, 31, 4000}).Draw(t, "seconds")) * time.Second
			l.Begin()
			if rapid.Bool().Draw(t, "taken over") {
				l.TakenOver()
				taken = true
			}
			now = now.Add(life)
			if row, short = row+1, short+1; life >= lasting {
				row, short, taken = 0, short-1, false
				if err := l.Err(); err != nil {
					t.Fatalf("after %v: %v", life, err)
				}
			}
			ended := l.End()
			if (ended != nil) != (row == shortLives) {
				t.Fatalf("%d short lives: %v", row, ended)
			}
			err := l.Err()
			if (err != nil) != (row >= shortLives) || l.Short() != short {
				t.Fatalf("%d short lives, %d of all: %v, %d", row, short, err, l.Short())
			}
			if err != nil && (!strings.Contains(err.Error(), "the client id flank-7") || !strings.Contains(err.Error(), "stop one of them") || strings.Contains(err.Error(), "another program connects") != taken) {
				t.Fatal(err)
			}
		}
	})
}

// Two programs with one client id, each of which takes it from the other as soon as it may, find that out and
// never stop waiting in between.
func TestLivesOfTwo(t *testing.T) {
	now := time.Unix(1, 0)
	clock := func() time.Time { return now }
	two := []*Lives{NewLives("a", "", clock), NewLives("a", "", clock)}
	two[0].Begin()
	connections, warnings := 1, 0
	for now.Before(time.Unix(3601, 0)) {
		has, wants := two[(connections+1)%2], two[connections%2]
		now = now.Add(wants.Wait(0))
		wants.Begin()
		connections++
		has.TakenOver()
		if has.End() != nil {
			warnings++
		}
	}
	if warnings != 2 || two[0].Err() == nil || two[1].Err() == nil || connections > 200 {
		t.Errorf("%d connections in an hour, %d warnings", connections, warnings)
	}
}
