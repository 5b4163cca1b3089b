package spool

import (
	"fmt"
	"os"
	"strings"
)

// Owner is whose windows a spool keeps. Two owners of one epoch would mix their
// records under the same seqs.
type Owner struct {
	Machine string `json:"machine"`
	Host    string `json:"host"`
}

// ownerName is the file that says whose the spool is.
const ownerName = "owner.json"

// Host returns the name of this computer and, where the system gives it one, its id, by
// which computers of one name differ.
func Host() string {
	name, _ := os.Hostname() // without a name the id remains
	if id, err := os.ReadFile("/etc/machine-id"); err == nil && len(id) >= 8 {
		name += "/" + strings.TrimSpace(string(id))[:8]
	}
	return name
}

// checkOwner compares the spool with Settings.Owner. A spool of another machine is
// refused while records wait in it, and begins a new epoch otherwise. That another
// host had it is left to the caller, who calls Own.
func (s *Spool) checkOwner(rec *Recovery) error {
	if s.set.Owner == (Owner{}) {
		return nil
	}
	was, _, err := ReadJSON[Owner](s.disk, ownerName) // a damaged file says nothing
	switch {
	case err != nil:
		return err
	case was == s.set.Owner:
		return nil
	case was == (Owner{}): // new, or the file is damaged or gone: then records may wait in it
		rec.NoOwner = rec.Pending > 0
		return s.Own()
	case was.Machine != s.set.Owner.Machine && rec.Pending > 0:
		return fmt.Errorf("%d windows of machine %q wait in it, and this ingester is of machine %q: give this one a folder of its own (`spool`), or run the other one until `ingest spool inspect` shows nothing pending",
			rec.Pending, was.Machine, s.set.Owner.Machine)
	case was.Machine != s.set.Owner.Machine:
		rec.OtherMachine, rec.NewEpoch = was.Machine, true
		if _, err := s.NewEpoch(0); err != nil {
			return err
		}
		return s.Own()
	}
	rec.OtherHost = was.Host
	return nil
}

// Own makes the spool the one of Settings.Owner.
func (s *Spool) Own() error { return WriteJSON(s.disk, ownerName, s.set.Owner) }
