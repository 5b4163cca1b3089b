// Package await waits, in tests, for what other goroutines and processes are about
// to do.
package await

import (
	"flag"
	"testing"
	"time"
)

// Patience bounds what should take a moment. It is not a measure of speed: Apache
// Kafka on a busy machine takes minutes to come back.
const Patience = 4 * time.Minute

// Together lets more tests run at a time than there are processors, unless -parallel says how
// many: parallel tests that call it in their TestMain mostly wait for timeouts and heartbeats.
func Together() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", "8"); err != nil {
			panic(err)
		}
	}
}

// Until waits until ok. What says that in words, such as "the client is gone".
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	Right(t, func() string {
		if ok() {
			return ""
		}
		return "still waiting until " + what
	})
}

// Right waits until wrong returns "", and else fails with what it returned last.
func Right(t testing.TB, wrong func() string) {
	t.Helper()
	for deadline := time.Now().Add(Patience); ; time.Sleep(2 * time.Millisecond) {
		text := wrong()
		if text == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(text)
		}
	}
}
