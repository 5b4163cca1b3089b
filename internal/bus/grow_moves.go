package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// movedSuffix is of the record that says to which partition a machine's state has moved.
const movedSuffix = stateSeparator + "moved"

// sayMoves says of each group which machines have moved to the partitions that they have now, and
// which have not. It changes nothing, so it says, too, why it cannot read that.
func (g *grower) sayMoves(ctx context.Context) {
	if len(g.groups) == 0 {
		return
	}
	all, err := g.readMoves(ctx)
	if err != nil {
		g.say(fmt.Sprintf("note     which machines have moved is not known: %v", err))
		return
	}
	for _, name := range g.groups {
		if of := all[name]; of != nil {
			of.say(name, g.partitions, g.say)
		}
	}
}

// moves is what the state of a group says of where its machines are.
type moves struct {
	in    map[string][]int // by machine: the partitions that have its state
	from  map[string]int   // by machine that has moved to the partition that it has now: a partition that it left
	waits map[string]bool
}

// readMoves reads where the machines of all groups of monitors are.
func (g *grower) readMoves(ctx context.Context) (map[string]*moves, error) {
	type place struct {
		partition int
		key       string
	}
	values := make(map[place]string)
	err := ReadTopic(ctx, g.c.cfg, TopicState, FirstOffset, false, func(m Message) error {
		at, value := place{m.Partition, m.Key}, ""
		switch strings.Count(m.Key, stateSeparator) {
		case 1: // of the machine itself: that it is there is enough
		case 2:
			if value = string(m.Value); !strings.HasSuffix(m.Key, waitsSuffix) && !strings.HasSuffix(m.Key, movedSuffix) {
				return nil
			}
		default:
			return nil
		}
		if delete(values, at); m.Value != nil {
			values[at] = value
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	all := make(map[string]*moves)
	for _, name := range g.groups {
		all[name] = &moves{in: make(map[string][]int), from: make(map[string]int), waits: make(map[string]bool)}
	}
	for at, value := range values {
		parts := strings.Split(at.key, stateSeparator)
		of, machine := all[parts[0]], parts[1]
		switch {
		case of == nil:
		case len(parts) == 2:
			of.in[machine] = append(of.in[machine], at.partition)
		case strings.HasSuffix(at.key, waitsSuffix):
			of.waits[machine] = true
		default:
			var to struct{ To, Partitions int }
			if json.Unmarshal([]byte(value), &to) == nil && to.Partitions == g.partitions {
				of.from[machine] = at.partition
			}
		}
	}
	return all, nil
}

// say says where the machines of a group are.
func (of *moves) say(group string, partitions int, say func(string)) {
	var moved, waits, later []string
	stay := 0
	for _, machine := range slices.Sorted(maps.Keys(of.in)) {
		home := PartitionOf(machine, partitions)
		from, has := of.from[machine]
		switch at := of.in[machine]; {
		case of.waits[machine]: // listed below
		case !slices.Contains(at, home):
			later = append(later, fmt.Sprintf("later    %s is in partition %d, and goes to %d with its next window or command", machine, slices.Min(at), home))
		case has:
			moved = append(moved, fmt.Sprintf("moved    %s from partition %d to %d", machine, from, home))
		default:
			stay++
		}
	}
	for _, machine := range slices.Sorted(maps.Keys(of.waits)) {
		waits = append(waits, fmt.Sprintf("waits    %s: partition %d asks for its state", machine, PartitionOf(machine, partitions)))
	}
	say(fmt.Sprintf("machines group %s: %d moved, %d waiting, %d later, %d that need not move", group, len(moved), len(waits), len(later), stay))
	for _, line := range slices.Concat(moved, waits, later) {
		say(line)
	}
}
