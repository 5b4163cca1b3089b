package event

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Keys name the group, since two groups judge for themselves.
const keySeparator = "\x1f"

// statePart says which record of a machine a key is of: a machine is kept in several, so that a window only writes what it changes.
type statePart string

// The records of a machine.
const (
	HeadState  statePart = ""        // of the machine itself: what changes with every window
	SlowState  statePart = "slow"    // what changes with an epoch or an alarm
	ToolState  statePart = "tool"    // one for each tool
	ModelState statePart = "judging" // one for what each model knows of a tool
)

// StateVersion is the version of the state records that this program writes and reads.
const StateVersion = 3

// StateKey is the key of a state record, taken apart.
type StateKey struct {
	Group   string
	Machine string
	Part    statePart
	Tool    string // of ToolState and ModelState
	Model   string // id; of ModelState
}

// ParseStateKey takes the key of a state record apart. It reports false for a key that no
// program of ours makes.
func ParseStateKey(key string) (k StateKey, ok bool) {
	parts := strings.SplitN(key, keySeparator, 5) // a tool is called as its machine likes
	switch {
	case len(parts) < 2 || parts[0] == "" || parts[1] == "":
		return StateKey{}, false
	case len(parts) == 2:
		return StateKey{Group: parts[0], Machine: parts[1]}, true
	case len(parts) == 3 && parts[2] == string(SlowState):
		return StateKey{Group: parts[0], Machine: parts[1], Part: SlowState}, true
	case len(parts) >= 4 && parts[2] == string(ToolState):
		return StateKey{Group: parts[0], Machine: parts[1], Part: ToolState, Tool: strings.Join(parts[3:], keySeparator)}, true
	case len(parts) == 5 && parts[2] == string(ModelState) && parts[3] != "":
		return StateKey{Group: parts[0], Machine: parts[1], Part: ModelState, Model: parts[3], Tool: parts[4]}, true
	}
	return StateKey{}, false
}

// String puts a key together.
func (k StateKey) String() string {
	parts := []string{k.Group, k.Machine, string(k.Part)}
	switch k.Part {
	case HeadState:
		parts = parts[:2]
	case ToolState:
		parts = append(parts, k.Tool)
	case ModelState:
		parts = append(parts, k.Model, k.Tool)
	}
	return strings.Join(parts, keySeparator)
}

// StateRecord is a record of the state topic: a key, and a value that is nil to delete it. The
// partition is the machine's.
type StateRecord struct {
	Key    StateKey
	Value  []byte
	Offset int64 // of one that was read
}

// CheckGroup reports a name that no group may have: its records could not be told from a shadow's, or not be read back.
func CheckGroup(group string) error {
	if strings.Contains(group, shadowSeparator) || strings.Contains(group, keySeparator) {
		return fmt.Errorf("group %q: write its name without %q, which is between a group and the model of one of its shadows", group, shadowSeparator)
	}
	return nil
}

// StateModels returns the ids of the models that know tools of the machines of these records.
func StateModels(records []StateRecord) (ids []string) {
	add := func(id string) {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, r := range records {
		add(r.Key.Model)
		if r.Key.Part == HeadState && r.Value != nil {
			var h struct{ Model string } // of headRecord, without what is long
			if json.Unmarshal(r.Value, &h) == nil {
				add(h.Model)
			}
		}
	}
	return ids
}

// CheckStateVersion reports records of a machine of another version than this program reads: its head names it.
func CheckStateVersion(records []StateRecord) error {
	for _, r := range records {
		if r.Key.Part == HeadState && r.Value != nil {
			var h struct{ Version int }
			if err := json.Unmarshal(r.Value, &h); err != nil {
				return err
			}
			if h.Version != StateVersion {
				return fmt.Errorf("it is of version %d, this program reads version %d: use the release that wrote it", h.Version, StateVersion)
			}
		}
	}
	return nil
}
