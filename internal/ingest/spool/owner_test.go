package spool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A spool belongs to a machine and a host.
func TestOwner(t *testing.T) {
	a, elsewhere, b := Owner{"a", "h1"}, Owner{"a", "h2"}, Owner{"b", "h1"}
	for name, tc := range map[string]struct {
		was, is  Owner
		pending  bool
		newEpoch bool
		host     string // Recovery.OtherHost
		machine  string // Recovery.OtherMachine
		refused  bool
		unknown  bool // Recovery.NoOwner
	}{
		"the same":                      {was: a, is: a, pending: true},
		"it does not say":               {is: a, pending: true, unknown: true},
		"it does not say, all sent":     {is: a},
		"another host":                  {was: a, is: elsewhere, pending: true, host: "h1"},
		"another machine":               {was: a, is: b, pending: true, refused: true},
		"another machine, all sent":     {was: a, is: b, newEpoch: true, machine: "a"},
		"another machine and host":      {was: elsewhere, is: b, pending: true, refused: true},
		"nothing is checked without it": {was: a, pending: true},
	} {
		dir := t.TempDir()
		s, _ := mustOpen(t, dir, Settings{Owner: tc.was, fsync: noSync})
		mustAppend(t, s, "x", "y")
		if !tc.pending {
			if err := s.Ack(1); err != nil {
				t.Fatal(err)
			}
		}
		epoch := s.Epoch()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s, rec, err := Open(dir, Settings{Owner: tc.is, fsync: noSync})
		if tc.refused {
			if err == nil || !strings.Contains(err.Error(), `2 windows of machine "a" wait in it, and this ingester is of machine "b"`) {
				t.Errorf("%s: %v", name, err)
			}
			s, _, err = Open(dir, Settings{Owner: tc.was, fsync: noSync}) // the other one goes on
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			s.Close()
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if rec.OtherHost != tc.host || rec.OtherMachine != tc.machine || (s.Epoch() != epoch) != tc.newEpoch || rec.NewEpoch != tc.newEpoch || rec.NoOwner != tc.unknown {
			t.Errorf("%s: %+v, epoch %x after %x", name, rec, s.Epoch(), epoch)
		}
		if err := s.Own(); err != nil {
			t.Fatal(err)
		}
		s.Close()
		if s, rec := mustOpen(t, dir, Settings{Owner: tc.is, fsync: noSync}); rec.OtherHost != "" || rec.NewEpoch || rec.NoOwner {
			t.Errorf("%s, later: %+v", name, rec)
		} else {
			s.Close()
		}
	}
	if Host() == "" {
		t.Error("this host has no name")
	}
}

// Any bytes in the owner's file are refused or read, and never stop a spool.
func FuzzOwner(f *testing.F) {
	f.Add([]byte(`{"machine":"a","host":"h"}`))
	f.Add([]byte(`{"machine":1}`))
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, ownerName), text, 0o600); err != nil {
			t.Fatal(err)
		}
		s, _, err := Open(dir, Settings{Owner: Owner{"a", "h"}, fsync: noSync})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
	})
}
