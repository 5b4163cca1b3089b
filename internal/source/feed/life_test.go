package feed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/mqtttest"
	"github.com/flank-tcm/flank/pkg/signal"
)

// counting makes lives of a Setting that differ: life-1, life-2, ...
func counting(s *Setting) *Setting {
	n := 0
	s.mint = func() string { n++; return fmt.Sprintf("life-%d", n) }
	return s
}

func mustOpenSetting(t *testing.T, path string) *Setting {
	t.Helper()
	s, err := OpenSetting(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustApply(t *testing.T, s *Setting, text string) signal.Context {
	t.Helper()
	c, err := parseChange([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	now, err := s.Apply(c)
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// A tool that is declared new has another life from the next frame on, and begins a
// session; it has the same one whenever it comes back, also after a restart.
func TestToolLife(t *testing.T) {
	t.Parallel()
	l := layout(t)
	path := filepath.Join(t.TempDir(), "context.json")
	set := counting(mustOpenSetting(t, path))
	f := open(Config{Machine: drill, Layout: l, Setting: set})
	frame := func(tool string) *source.Block {
		b := bare(l, 0, 7, 0, 4, tool)
		f.complete(b)
		return b
	}
	if _, err := set.Apply(Change{New: true}); !errors.Is(err, ErrNoTool) {
		t.Errorf("no tool that could be new: %v", err)
	}
	mustApply(t, set, `{"tool": "T8", "hole": "3", "spindle_speed": 1650}`)
	old := frame("")
	if old.ToolLife != "" {
		t.Errorf("never declared new: %q", old.ToolLife)
	}
	mustApply(t, set, `{"new": true}`)
	if want := (signal.Context{Tool: "T8", ToolLife: "life-1"}); set.Context() != want {
		t.Errorf("%+v, want %+v: hole and speed belonged to the tool before", set.Context(), want)
	}
	fresh := frame("")
	if fresh.ToolLife != "life-1" || fresh.Session == old.Session {
		t.Errorf("life %q, session %d after %d", fresh.ToolLife, fresh.Session, old.Session)
	}
	if b := frame(""); b.Session != fresh.Session {
		t.Error("each frame begins a session")
	}
	mustApply(t, set, `{"tool": "T9"}`)
	if b := frame(""); b.ToolLife != "" {
		t.Errorf("T9 was never declared new: %q", b.ToolLife)
	}
	set = mustOpenSetting(t, path)
	f = open(Config{Machine: drill, Layout: l, Setting: set})
	mustApply(t, set, `{"tool": "T8"}`)
	if b := frame(""); b.ToolLife != "life-1" || b.Session != fresh.Session {
		t.Errorf("T8 comes back: life %q, session %d; want life-1 and %d", b.ToolLife, b.Session, fresh.Session)
	}
	if life := mustApply(t, set, `{"tool": "T8", "new": true}`).ToolLife; life == "life-1" || len(life) > signal.MaxToolLife || !strings.HasPrefix(life, "20") {
		t.Errorf("declared new again: %q", life)
	}
}

// Where frames name their tools, any of them may be declared new, in use or not.
func TestToolLifeOfNamedTools(t *testing.T) {
	t.Parallel()
	l := layout(t)
	set := counting(mustOpenSetting(t, filepath.Join(t.TempDir(), "context.json")))
	f := open(Config{Machine: drill, Layout: l, Setting: set})
	life := func(tool string) string {
		b := bare(l, 0, 7, 0, 4, tool)
		f.complete(b)
		return b.Tool + " " + b.ToolLife
	}
	life("T1")
	mustApply(t, set, `{"new": true}`)
	mustApply(t, set, `{"tool": "T2", "new": true}`)
	for tool, want := range map[string]string{"T1": "T1 life-1", "T2": "T2 life-2", "T3": "T3 "} {
		if got := life(tool); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	name := "T4"
	if _, err := set.Apply(Change{Tool: &name}); !errors.Is(err, ErrNamed) {
		t.Errorf("another tool than the frames name: %v", err)
	}
}

// The last 64 tools that were declared new keep their lives, those in use before
// others, through restarts; files of older programs have none.
func TestLivesAreBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "context.json")
	if err := os.WriteFile(path, []byte(`{"tool":"T0","hole":"1","spindle_speed":7}`), 0o600); err != nil {
		t.Fatal(err)
	}
	set := counting(mustOpenSetting(t, path))
	if want := (signal.Context{Tool: "T0", Hole: "1", SpindleSpeed: 7}); set.Context() != want {
		t.Fatalf("%+v, want %+v", set.Context(), want)
	}
	mustApply(t, set, `{"new": true}`)
	for i := 1; i < maxLives; i++ {
		mustApply(t, set, fmt.Sprintf(`{"tool": "T%d", "new": true}`, i))
	}
	mustApply(t, set, `{"tool": "T0"}`) // T1 is the oldest now
	mustApply(t, set, `{"tool": "new", "new": true}`)
	set = mustOpenSetting(t, path)
	if len(set.lives) != maxLives || set.lives.of("T0") != "life-1" || set.lives.of("T1") != "" || set.lives.of("T2") != "life-3" || set.lives.of("new") == "" {
		t.Errorf("%d lives: %v", len(set.lives), set.lives)
	}
}

// However tools are declared and used, the last 64 tools that were used of
// those that were declared new have the life of their last declaration.
func TestLivesByModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var ls lives
		var want lives // the plain way: one tool after the other
		n := 0
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			tool := fmt.Sprint("T", rapid.IntRange(0, 80).Draw(t, "tool"))
			had := ""
			for i, l := range want {
				if l.Tool == tool {
					had = l.Life
					want = append(append(lives{}, want[:i]...), want[i+1:]...)
					break
				}
			}
			if rapid.IntRange(0, 3).Draw(t, "new") > 0 {
				n++
				had = fmt.Sprint("life-", n)
				ls = ls.declare(tool, had)
			} else {
				ls = ls.touch(tool)
			}
			if had != "" {
				want = append(want, life{tool, had})
			}
			if len(want) > maxLives {
				want = want[1:]
			}
			if !slices.Equal(ls, want) {
				t.Fatalf("%v, want %v", ls, want)
			}
		}
	})
}

// By MQTT a tool is declared new once: a retained message does not say it again.
func TestMQTTNewTool(t *testing.T) {
	t.Parallel()
	s := mqtttest.Start(t, mqtttest.Options{})
	publish(t, s, "context", []byte(`{"tool": "T08", "new": true}`), true)
	set := mustOpenSetting(t, filepath.Join(t.TempDir(), "context.json"))
	f, heard := subscribe(t, s.URL, set)
	await.Until(t, "the retained tool is known", func() bool { return set.Context().Tool == "T08" })
	await.Until(t, "the broker is connected", connected(f))
	if life := set.Context().ToolLife; life != "" || !heard.has("context: the message was retained") {
		t.Errorf("the retained message declares a tool new: %q", life)
	}
	publish(t, s, "context", []byte(`{"new": true}`), false)
	await.Until(t, "it is declared new", func() bool { return set.Context().ToolLife != "" && heard.has(`context: tool "T08" is new`) })
	life := set.Context().ToolLife
	publish(t, s, "context", []byte(`{"hole": "4"}`), false)
	await.Until(t, "the hole is known", func() bool { return set.Context().Hole == "4" })
	if set.Context().ToolLife != life {
		t.Errorf("life %q, was %q", set.Context().ToolLife, life)
	}
}
