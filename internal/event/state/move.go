package state

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/flank-tcm/flank/internal/event"
)

// ErrNoRecord is returned for a command that renames a machine of which the group knows nothing.
var ErrNoRecord = errors.New("no state record of the group is in it: the group knew nothing of the machine when the command was sent")

// Renamed returns a group's state records of a machine under another name, out of those in a command that renames it, which are
// of all groups. It reports records that no program of ours wrote, and that none is of the group.
func Renamed(records []event.Kept, group, was, name string) ([]Record, error) {
	var out []Record
	for _, r := range records {
		k, ok := ParseKey(r.Key)
		switch {
		case !ok || k.Machine != was:
			return nil, fmt.Errorf("state record %q is not of machine %.64q", r.Key, was)
		case k.Group == group:
			k.Machine = name
			out = append(out, Record{Key: k, Value: r.Value})
		}
	}
	if len(out) == 0 {
		return nil, ErrNoRecord
	}
	return out, nil
}

// Moved returns a state record for another partition than it lies in: without the offsets of
// windows, which are of the partition that it leaves, and where no model finds the past of a tool any more. What would be
// read again from there is read from the oldest window. It reports a record that no program of ours wrote.
func Moved(r Record) (Record, error) {
	if r.Value == nil || r.Key.Part != OfTool && r.Key.Part != Head {
		return r, nil
	}
	var fields map[string]json.RawMessage
	err := json.Unmarshal(r.Value, &fields)
	if err == nil && r.Key.Part == OfTool {
		err = leavePartition(fields)
	} else if err == nil {
		err = leaveHead(fields)
	}
	if err != nil {
		return Record{}, err
	}
	r.Value = event.JSON(fields)
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
		fields["tool"] = event.JSON(tool)
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
			job["offset"] = event.JSON(offset)
		}
		fields["evidence"] = event.JSON(jobs)
	}
	return nil
}

// leavePartition does so in what is kept of a tool.
func leavePartition(tool map[string]json.RawMessage) error {
	tool["past_gone"] = event.JSON(true)
	text, there := tool["trace"]
	if !there {
		return nil
	}
	var t Trace
	if err := json.Unmarshal(text, &t); err != nil {
		return err
	}
	for i := range t {
		t[i].Offset.At = 0
	}
	tool["trace"] = event.JSON(t)
	return nil
}
