package bus

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/segmentio/kafka-go"
)

// sticky divides a topic's partitions among the members of a group so that each member keeps
// what it has. Every member says in its request to join which partitions it has had since which
// generation; the member that the broker makes the leader divides them.
type sticky struct {
	name, topic string

	mu   sync.Mutex
	mine claim
}

// counted is a balancer that notes how many partitions it has divided last.
type counted struct {
	kafka.GroupBalancer
	topic string
	n     *atomic.Int32
}

// notLeading is what n says while another member divides the partitions.
const notLeading = -1

// UserData implements kafka.GroupBalancer. The client library calls it before each generation.
func (b counted) UserData() ([]byte, error) {
	b.n.Store(notLeading)
	return b.GroupBalancer.UserData()
}

// AssignGroups implements kafka.GroupBalancer.
func (b counted) AssignGroups(members []kafka.GroupMember, partitions []kafka.Partition) kafka.GroupMemberAssignments {
	b.n.Store(int32(len(idsOf(b.topic, partitions))))
	return b.GroupBalancer.AssignGroups(members, partitions)
}

// idsOf returns the numbers of the partitions of a topic.
func idsOf(topic string, partitions []kafka.Partition) (ids []int) {
	for _, p := range partitions {
		if p.Topic == topic {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// claim is what a member sends with its request to join.
type claim struct {
	Generation int32 `json:"generation"` // the last one in which the member got partitions
	Partitions []int `json:"partitions"`
}

// ProtocolName implements kafka.GroupBalancer.
func (s *sticky) ProtocolName() string { return s.name }

// UserData implements kafka.GroupBalancer.
func (s *sticky) UserData() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return json.Marshal(s.mine)
}

// got notes what this member has from a generation on.
func (s *sticky) got(generation int32, partitions []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mine = claim{generation, partitions}
}

// AssignGroups implements kafka.GroupBalancer.
func (s *sticky) AssignGroups(members []kafka.GroupMember, partitions []kafka.Partition) kafka.GroupMemberAssignments {
	ids := idsOf(s.topic, partitions)
	claims := make(map[string]claim)
	for _, m := range members {
		var c claim
		if err := json.Unmarshal(m.UserData, &c); err != nil {
			c = claim{} // a member of a release that says nothing
		}
		claims[m.ID] = c
	}
	assignments := make(kafka.GroupMemberAssignments)
	for member, share := range divide(ids, claims) {
		assignments[member] = map[string][]int{s.topic: share}
	}
	return assignments
}

// divide returns the partitions of each member. No member gets two partitions more than another,
// and as few as possible change their member. The result does not depend on the order of the
// partitions.
//
// Of several members that claim a partition, the one with the newest generation has it: a member
// that was suspended claims what others have got meanwhile.
func divide(partitions []int, claims map[string]claim) map[string][]int {
	members := slices.Sorted(maps.Keys(claims))
	owner := owners(members, claims)
	shares := make(map[string][]int)
	var free []int
	for _, p := range slices.Sorted(slices.Values(partitions)) {
		if m, owned := owner[p]; owned {
			shares[m] = append(shares[m], p)
		} else {
			free = append(free, p)
		}
	}
	// Where they cannot all have the same number, those that have most keep one more.
	slices.SortStableFunc(members, func(a, b string) int { return cmp.Compare(len(shares[b]), len(shares[a])) })
	due := func(i int) int { return (len(partitions) + len(members) - 1 - i) / len(members) }
	for i, m := range members {
		if n := due(i); len(shares[m]) > n {
			free = append(free, shares[m][n:]...)
			shares[m] = shares[m][:n:n]
		}
	}
	for i, m := range members {
		n := due(i) - len(shares[m])
		shares[m] = append(shares[m], free[:n]...)
		free = free[n:]
	}
	return shares
}

// owners returns which member has each partition by its claim.
func owners(members []string, claims map[string]claim) map[int]string {
	owner := make(map[int]string)
	for _, m := range members {
		for _, p := range claims[m].Partitions {
			if other, claimed := owner[p]; !claimed || claims[m].Generation > claims[other].Generation {
				owner[p] = m
			}
		}
	}
	return owner
}
