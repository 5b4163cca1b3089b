// Package state is the form of what is remembered of a machine: the records of the topic tcm.state.v1, their keys, and how they go to
// another name or another partition. It judges nothing.
package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/event"
)

// Keys name the group, since two groups judge for themselves.
const keySeparator = "\x1f"

// part says which record of a machine a key is of: a machine is kept in several, so that a window only writes what it changes.
type part string

// The records of a machine.
const (
	Head    part = ""        // of the machine itself: what changes with every window
	Slow    part = "slow"    // what changes with an epoch or an alarm
	OfTool  part = "tool"    // one for each tool
	OfModel part = "judging" // one for what each model knows of a tool
)

// Version is the version of the records that this program writes and reads.
const Version = 3

// Key is the key of a state record, taken apart.
type Key struct {
	Group   string
	Machine string
	Part    part
	Tool    string // of OfTool and OfModel
	Model   string // id; of OfModel
}

// ParseKey takes the key of a state record apart. It reports false for a key that no
// program of ours makes.
func ParseKey(key string) (k Key, ok bool) {
	parts := strings.SplitN(key, keySeparator, 5) // a tool is called as its machine likes
	switch {
	case len(parts) < 2 || parts[0] == "" || parts[1] == "":
		return Key{}, false
	case len(parts) == 2:
		return Key{Group: parts[0], Machine: parts[1]}, true
	case len(parts) == 3 && parts[2] == string(Slow):
		return Key{Group: parts[0], Machine: parts[1], Part: Slow}, true
	case len(parts) >= 4 && parts[2] == string(OfTool):
		return Key{Group: parts[0], Machine: parts[1], Part: OfTool, Tool: strings.Join(parts[3:], keySeparator)}, true
	case len(parts) == 5 && parts[2] == string(OfModel) && parts[3] != "":
		return Key{Group: parts[0], Machine: parts[1], Part: OfModel, Model: parts[3], Tool: parts[4]}, true
	}
	return Key{}, false
}

// String puts a key together.
func (k Key) String() string {
	parts := []string{k.Group, k.Machine, string(k.Part)}
	switch k.Part {
	case Head:
		parts = parts[:2]
	case OfTool:
		parts = append(parts, k.Tool)
	case OfModel:
		parts = append(parts, k.Model, k.Tool)
	}
	return strings.Join(parts, keySeparator)
}

// Record is a record of the state topic: a key, and a value that is nil to delete it. The
// partition is the machine's.
type Record struct {
	Key    Key
	Value  []byte
	Offset int64 // of one that was read
}

// CheckGroup reports a name that no group may have: its records could not be told from a shadow's, or not be read back.
func CheckGroup(group string) error {
	if strings.Contains(group, event.ShadowSeparator) || strings.Contains(group, keySeparator) {
		return fmt.Errorf("group %q: write its name without %q, which is between a group and the model of one of its shadows", group, event.ShadowSeparator)
	}
	return nil
}

// Models returns the ids of the models that know tools of the machines of these records.
func Models(records []Record) (ids []string) {
	add := func(id string) {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, r := range records {
		add(r.Key.Model)
		if r.Key.Part == Head && r.Value != nil {
			var h struct{ Model string } // of headRecord, without what is long
			if json.Unmarshal(r.Value, &h) == nil {
				add(h.Model)
			}
		}
	}
	return ids
}

// CheckVersion reports records of a machine of another version than this program reads: its head names it.
func CheckVersion(records []Record) error {
	for _, r := range records {
		if r.Key.Part == Head && r.Value != nil {
			var h struct{ Version int }
			if err := json.Unmarshal(r.Value, &h); err != nil {
				return err
			}
			if h.Version != Version {
				return fmt.Errorf("it is of version %d, this program reads version %d: use the release that wrote it", h.Version, Version)
			}
		}
	}
	return nil
}
