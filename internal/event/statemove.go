package event

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrNoState is returned for a command that renames a machine of which the group knows nothing.
var ErrNoState = errors.New("no state record of the group is in it: the group knew nothing of the machine when the command was sent")

// RenamedState returns a group's state records of a machine under another name, out of those in a command that renames it, which are
// of all groups. It reports records that no program of ours wrote, and that none is of the group.
func RenamedState(records []Kept, group, was, name string) ([]StateRecord, error) {
	var out []StateRecord
	for _, r := range records {
		k, ok := ParseStateKey(r.Key)
		switch {
		case !ok || k.Machine != was:
			return nil, fmt.Errorf("state record %q is not of machine %.64q", r.Key, was)
		case k.Group == group:
			k.Machine = name
			out = append(out, StateRecord{Key: k, Value: r.Value})
		}
	}
	if len(out) == 0 {
		return nil, ErrNoState
	}
	return out, nil
}

// MovedState returns a state record for another partition than it lies in: without the offsets of
// windows, which are of the partition that it leaves, and where no model finds the past of a tool any more. What would be
// read again from there is read from the oldest window. It reports a record that no program of ours wrote.
func MovedState(r StateRecord) (StateRecord, error) {
	if r.Value == nil || r.Key.Part != ToolState && r.Key.Part != HeadState {
		return r, nil
	}
	var fields map[string]json.RawMessage
	err := json.Unmarshal(r.Value, &fields)
	if err == nil && r.Key.Part == ToolState {
		err = leavePartition(fields)
	} else if err == nil {
		err = leaveHead(fields)
	}
	if err != nil {
		return StateRecord{}, err
	}
	r.Value = JSON(fields)
	return r, nil
}

// leaveHead does so in the record of the machine itself.
func leaveHead(fields map[string]json.RawMessage) error {
	if text, there := fields["tool"]; there {
		var tool map[string]json.RawMessage
		if err := json.Unmarshal(text, &tool); err != nil {
			return err
		}
		if err := leavePartition(tool); err != nil {
			return err
		}
		fields["tool"] = JSON(tool)
	}
	var jobs []map[string]json.RawMessage
	if text, there := fields["evidence"]; there {
		if err := json.Unmarshal(text, &jobs); err != nil {
			return err
		}
		for _, job := range jobs {
			var offset Offset
			if err := json.Unmarshal(job["offset"], &offset); err != nil {
				return err
			}
			offset.At = 0
			job["offset"] = JSON(offset)
		}
		fields["evidence"] = JSON(jobs)
	}
	return nil
}

// leavePartition does so in what is kept of a tool.
func leavePartition(tool map[string]json.RawMessage) error {
	tool["past_gone"] = JSON(true)
	text, there := tool["trace"]
	if !there {
		return nil
	}
	var t StateTrace
	if err := json.Unmarshal(text, &t); err != nil {
		return err
	}
	for i := range t {
		t[i].Offset.At = 0
	}
	tool["trace"] = JSON(t)
	return nil
}
