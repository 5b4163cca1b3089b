package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/flank-tcm/flank/internal/config"
)

// defaultPartitions is how many partitions Apply gives a new topic of machines. Each costs files and memory on
// every broker, and requests of each monitor; MachinesAPartition says what they are enough for.
const defaultPartitions = 8

// MachinesAPartition is how many machines a partition serves on average before some partition has many more than
// others: Kafka's hash of a name puts up to three times the average on one.
const MachinesAPartition = 4

// MachineTopics returns the topics whose messages go by machine. They must have as
// many partitions as each other: a monitor that has partition 3 of the windows reads
// and writes partition 3 of the others. The slice is the caller's.
func MachineTopics() []string {
	return []string{TopicWindows, TopicState, TopicCommands, TopicResults, TopicAlerts, TopicFeatures, TopicShadow}
}

// Retain is how much of a topic Kafka keeps: a message is removed when it is older
// than Time, or when the partition holds more than Bytes. Zero means the topic's default.
type Retain struct {
	Time  time.Duration // since the message arrived
	Bytes int64         // of each partition; Unlimited: only Time limits
}

// Unlimited is a Retain.Bytes without a limit.
const Unlimited int64 = -1

// TopicStatus is a topic as Apply or Describe found or made it.
type TopicStatus struct {
	Name       string
	Created    bool
	Partitions int
	Replicas   int      // of each partition
	Known      bool     // whether the broker lets this program read the settings below
	Compacted  bool     // the last message of each key stays
	Retain     Retain   // how much is kept if not compacted; Time below 0: no limit
	Segment    int64    // bytes of a file of the log; Kafka removes whole files
	largest    int64    // bytes of a batch of messages
	Notes      []string // Apply's changes, and settings that this program needs otherwise
}

// Most returns the most bytes that a partition takes on the disk of one broker after Kafka
// has removed old messages, or Unlimited. Kafka removes whole segments, so there is up to
// one segment more than retention says. For a compacted topic it does not count the last
// message of each key: it counts the segment being written, and as much again that waits
// for the cleaner.
func (s TopicStatus) Most() int64 {
	switch {
	case s.Compacted:
		return 3 * s.Segment
	case s.Retain.Bytes == Unlimited:
		return Unlimited
	}
	return s.Retain.Bytes + s.Segment
}

// topicPlan is how a topic is made.
type topicPlan struct {
	name    string
	compact bool
	retain  Retain // Bytes 0: as the broker has it. Of compacted topics Time 0: without end
	max     int    // largest batch of messages
	single  bool   // one partition for any number of machines
}

const day = 24 * time.Hour

// deadOverhead is how many bytes a dead letter may be longer than the message in it.
const deadOverhead = 1 << 20

func plan(cfg Config) []topicPlan {
	plans := []topicPlan{
		{name: TopicWindows, retain: Retain{7 * day, 250e9}, max: MaxMessage},
		{name: TopicFeatures, retain: Retain{90 * day, 50e9}, max: MaxMessage},
		{name: TopicShadow, retain: Retain{Time: 30 * day}, max: MaxMessage},
		{name: TopicResults, retain: Retain{Time: 30 * day}, max: MaxMessage},
		{name: TopicAlerts, retain: Retain{Time: 365 * day}, max: MaxMessage},
		{name: TopicState, compact: true, max: MaxMessage},
		{name: TopicCommands, retain: Retain{Time: 7 * day}, max: MaxMessage},
		{name: TopicModels, compact: true, max: MaxMessage, single: true},
		{name: TopicLabels, compact: true, retain: Retain{3650 * day, -1}, max: MaxMessage, single: true},
		{name: TopicAudit, retain: Retain{400 * day, 500e6}, max: MaxMessage, single: true},
		{name: TopicDead, retain: Retain{30 * day, 10e9}, max: MaxMessage + deadOverhead, single: true},
	}
	for i := range plans {
		plans[i].retain = cfg.Retain[plans[i].name].or(plans[i].retain)
	}
	return plans
}

// plannedTopic is a topic as Apply makes it where no configuration says otherwise.
type plannedTopic struct {
	Name     string
	Single   bool              // one partition for any number of machines
	Settings map[string]string // as Kafka names them
}

// Planned returns the topics, for other programs that make them.
func Planned(replication int) (all []plannedTopic) {
	for _, p := range plan(Config{}) {
		all = append(all, plannedTopic{p.name, p.single, p.settings(replication)})
	}
	return all
}

// or returns r with its zero fields from other.
func (r Retain) or(other Retain) Retain {
	return Retain{cmp.Or(r.Time, other.Time), cmp.Or(r.Bytes, other.Bytes)}
}

// Bounds of the segments of a topic with a limit of bytes. A segment is an eighth of the
// limit, so that Kafka keeps little more than the limit.
const (
	minSegment     = 16 << 20 // also for compacted topics: compaction leaves the segment being written alone
	defaultSegment = 1 << 30  // Kafka's default
)

// settings returns Kafka's settings for r, without its zero fields.
func (r Retain) settings() map[string]string {
	s := make(map[string]string)
	if r.Time != 0 {
		s["retention.ms"] = strconv.FormatInt(r.Time.Milliseconds(), 10)
	}
	if r.Bytes != 0 {
		segment := int64(defaultSegment)
		if r.Bytes > 0 {
			segment = min(max(r.Bytes/8, minSegment), defaultSegment)
		}
		s["retention.bytes"] = strconv.FormatInt(r.Bytes, 10)
		s["segment.bytes"] = strconv.FormatInt(segment, 10)
	}
	return s
}

func (p topicPlan) settings(replication int) map[string]string {
	s := p.retain.settings()
	s["cleanup.policy"] = "delete"
	if p.compact {
		s["cleanup.policy"] = p.policy()
		s["segment.bytes"] = strconv.Itoa(minSegment)
	}
	s["max.message.bytes"] = strconv.Itoa(p.max)
	// Age counts from arrival: the clock of a sender may be wrong.
	s["message.timestamp.type"] = "LogAppendTime"
	if replication >= 3 {
		s["min.insync.replicas"] = "2"
	}
	return s
}

// policy returns how Kafka removes messages of a compacted topic.
func (p topicPlan) policy() string {
	if p.retain.Time > 0 {
		return "compact,delete"
	}
	return "compact"
}

// Apply creates the topics that are missing, with the given number of replicas of
// each partition and the settings this program needs. New topics of machines get the given
// number of partitions; 0 means as many as the existing ones have, or defaultPartitions.
// Existing topics keep their partitions and settings, except for the entries of
// Config.Retain, and the status notes settings that would hurt. Apply tries until a broker
// answers or ctx ends. Calling it again changes nothing.
func Apply(ctx context.Context, cfg Config, partitions, replication int) ([]TopicStatus, error) {
	if partitions < 0 || replication < 1 {
		return nil, fmt.Errorf("bus: %d partitions with %d replicas: both must be at least 1", partitions, replication)
	}
	c, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	defer c.close()
	created := make(map[string]bool) // also by an attempt that failed afterwards
	var status []TopicStatus
	err = c.retry(ctx, func(ctx context.Context) error {
		status, err = c.apply(ctx, partitions, replication, created)
		return err
	})
	if err != nil {
		return nil, err
	}
	return status, nil
}

// partitionsNow returns how many partitions the topics of machines have.
func (c *client) partitionsNow(ctx context.Context) (n int, err error) {
	now, err := c.t.know(ctx, true, MachineTopics()...)
	if err != nil {
		return 0, err
	}
	for _, t := range MachineTopics() {
		n = max(n, len(now.Topics[t].Partitions))
	}
	return cmp.Or(n, defaultPartitions), nil
}

// noteUnlike notes on the topic of windows if topics of machines differ in their partitions.
func noteUnlike(status []TopicStatus) {
	counts := make(map[string]int)
	for _, s := range status {
		counts[s.Name] = s.Partitions
	}
	if err := Agree(counts, MachineTopics()); err != nil {
		status[0].note(strings.TrimPrefix(err.Error(), "bus: "))
	}
}

func (c *client) apply(ctx context.Context, partitions, replication int, created map[string]bool) ([]TopicStatus, error) {
	plans := plan(c.cfg)
	if partitions == 0 {
		var err error
		if partitions, err = c.partitionsNow(ctx); err != nil {
			return nil, err
		}
	}
	if err := c.create(ctx, plans, partitions, replication, created); err != nil {
		return nil, err
	}
	names := make([]string, len(plans))
	for i, p := range plans {
		names[i] = p.name
	}
	status, err := c.describe(ctx, names)
	if err != nil {
		return nil, err
	}
	var changed []int
	for i, p := range plans {
		s := &status[i]
		if s.Created = created[p.name]; s.Created {
			continue
		}
		before := s.Retain
		if err := s.retain(ctx, c.kc, p, c.cfg.Retain[p.name]); err != nil {
			return nil, err
		}
		if s.Known && s.Retain != before {
			changed = append(changed, i)
		}
	}
	noteUnlike(status)
	return status, c.awaitRetained(ctx, names, status, changed)
}

// settleTime bounds how long Apply waits until the broker shows what it has accepted.
const settleTime = 10 * time.Second

// awaitRetained waits until the broker shows how much the topics keep whose index is in changed: it accepts a
// change before it shows it. It gives up after settleTime, without an error: the change is made.
func (c *client) awaitRetained(ctx context.Context, names []string, status []TopicStatus, changed []int) error {
	for began := time.Now(); len(changed) > 0 && time.Since(began) < settleTime; {
		now, err := c.describe(ctx, names)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(changed, func(i int) bool { return now[i].Retain != status[i].Retain }) {
			return nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// create makes the missing topics and notes their names in created.
func (c *client) create(ctx context.Context, plans []topicPlan, partitions, replication int, created map[string]bool) error {
	req := &kafka.CreateTopicsRequest{}
	for _, p := range plans {
		t := kafka.TopicConfig{Topic: p.name, NumPartitions: partitions, ReplicationFactor: replication}
		if p.single {
			t.NumPartitions = 1
		}
		for name, value := range p.settings(replication) {
			t.ConfigEntries = append(t.ConfigEntries, kafka.ConfigEntry{ConfigName: name, ConfigValue: value})
		}
		req.Topics = append(req.Topics, t)
	}
	res, err := c.kc.CreateTopics(ctx, req)
	if err != nil {
		return err
	}
	for i, p := range plans {
		switch err := res.Errors[p.name]; {
		case errors.Is(err, kafka.TopicAlreadyExists):
		case err != nil:
			return fmt.Errorf("bus: create topic %s with %d partitions and %d replicas: %w", p.name, req.Topics[i].NumPartitions, replication, err)
		default:
			created[p.name] = true
		}
	}
	return nil
}

// Describe returns the status of topics, in the order of its arguments. It asks once. For a
// missing topic it returns ErrNoTopic.
func Describe(ctx context.Context, cfg Config, topics ...string) ([]TopicStatus, error) {
	c, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	defer c.close()
	if _, err := c.askPartitions(ctx, topics...); err != nil {
		return nil, explain(err, cfg)
	}
	status, err := c.describe(ctx, topics)
	return status, explain(err, cfg)
}

// describe returns the status of topics, with notes on settings that would hurt.
func (c *client) describe(ctx context.Context, names []string) ([]TopicStatus, error) {
	now, err := c.t.know(ctx, true, names...)
	if err != nil {
		return nil, err
	}
	ask := &kafka.DescribeConfigsRequest{}
	status := make([]TopicStatus, len(names))
	for i, name := range names {
		topic, err := now.topic(name)
		if err != nil {
			return nil, fmt.Errorf("bus: %w", err) // one just made is known in a moment
		}
		status[i] = TopicStatus{Name: name, Partitions: len(topic.Partitions), Replicas: len(topic.Partitions[0].Replicas)}
		ask.Resources = append(ask.Resources, kafka.DescribeConfigRequestResource{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: name,
			ConfigNames: []string{"max.message.bytes", "cleanup.policy", "message.timestamp.type", "retention.ms", "retention.bytes", "segment.bytes"},
		})
	}
	found, err := c.kc.DescribeConfigs(ctx, ask)
	if err != nil {
		return nil, err
	}
	plans := plan(Config{})
	for _, r := range found.Resources {
		i := slices.Index(names, r.ResourceName)
		if i < 0 || r.Error != nil {
			continue // the right to read settings is optional
		}
		s := &status[i]
		s.Known = true
		for _, e := range r.ConfigEntries {
			s.read(e.ConfigName, e.ConfigValue)
			if p := slices.IndexFunc(plans, func(p topicPlan) bool { return p.name == s.Name }); p >= 0 {
				s.note(plans[p].note(e.ConfigName, e.ConfigValue))
			}
		}
	}
	return status, nil
}

// read stores one setting of the topic.
func (s *TopicStatus) read(name, value string) {
	n, err := strconv.ParseInt(value, 10, 64)
	switch {
	case name == "cleanup.policy":
		s.Compacted = strings.Contains(value, "compact")
	case err != nil:
	case name == "retention.ms":
		s.Retain.Time = time.Duration(min(n, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	case name == "retention.bytes":
		s.Retain.Bytes = n
	case name == "max.message.bytes":
		s.largest = n
	case name == "segment.bytes":
		s.Segment = n
	}
}

// note adds a note, unless it is empty.
func (s *TopicStatus) note(text string) {
	if text != "" {
		s.Notes = append(s.Notes, text)
	}
}

// retain changes how much an existing topic keeps to the configuration's entry, and notes
// that. Without an entry it notes how much a new topic would keep.
func (s *TopicStatus) retain(ctx context.Context, kc *kafka.Client, p topicPlan, explicit Retain) error {
	want := explicit.or(s.Retain)
	if p.compact || want == s.Retain {
		s.noteFresh(p.retain)
		return nil
	}
	alter := kafka.IncrementalAlterConfigsRequestResource{ResourceType: kafka.ResourceTypeTopic, ResourceName: s.Name}
	for name, value := range explicit.settings() {
		alter.Configs = append(alter.Configs, kafka.IncrementalAlterConfigsRequestConfig{Name: name, Value: value, ConfigOperation: kafka.ConfigOperationSet})
	}
	res, err := kc.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{Resources: []kafka.IncrementalAlterConfigsRequestResource{alter}})
	if err == nil && len(res.Resources) > 0 {
		err = res.Resources[0].Error
	}
	if err != nil {
		return fmt.Errorf("bus: topic %s: set what it keeps to %v: %w", s.Name, want, err)
	}
	if s.Known {
		s.note(fmt.Sprintf("kept %v; the configuration has changed that to %v", s.Retain, want))
	} else {
		s.note(fmt.Sprintf("set to %v, as the configuration says", want))
	}
	for name, value := range explicit.settings() {
		s.read(name, value)
	}
	return nil
}

// noteFresh notes that a new topic would keep another amount.
func (s *TopicStatus) noteFresh(fresh Retain) {
	if s.Known && fresh != s.Retain && fresh.Bytes != 0 {
		s.note(fmt.Sprintf("keeps %v; a new topic would keep %v: set `retain` in the configuration to change it", s.Retain, fresh))
	}
}

// String returns text such as "7 days, at most 250 GB a partition".
func (r Retain) String() string {
	text := "messages of any age"
	if r.Time > 0 {
		text = span(r.Time)
	}
	if r.Bytes > 0 {
		text += ", at most " + FormatBytes(r.Bytes) + " a partition"
	}
	return text
}

// span returns d in days if it is two or more whole days.
func span(d time.Duration) string {
	if d >= 2*day && d%day == 0 {
		return fmt.Sprintf("%d days", d/day)
	}
	return config.Duration(d)
}

// FormatBytes returns n with three digits and a unit: 966 kB, 84.2 GB.
func FormatBytes(n int64) string {
	units := []string{"B", "kB", "MB", "GB", "TB", "PB"}
	v, i := float64(n), 0
	for ; v >= 999.5 && i < len(units)-1; i++ {
		v /= 1000
	}
	return strconv.FormatFloat(v, 'g', max(3, 1+int(math.Log10(max(v, 1)))), 64) + " " + units[i]
}

// Agree returns an error, with the counts and the remedy, if topics do not have as many
// partitions as each other. MachineTopics must. Agree ignores topics that are not in
// partitions.
func Agree(partitions map[string]int, topics []string) error {
	most, alike := 0, true
	var has []string
	for _, t := range topics {
		n, known := partitions[t]
		if !known {
			continue
		}
		alike = alike && (n == most || most == 0)
		most = max(most, n)
		has = append(has, fmt.Sprintf("%s has %s", t, plural(n, "partition")))
	}
	if alike {
		return nil
	}
	return fmt.Errorf("bus: the topics of machines must have as many partitions as each other, but %s: run `ingest topics grow --partitions %d`",
		strings.Join(has, ", "), most)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// note says what is wrong with a setting of a topic; empty: nothing.
func (p topicPlan) note(name, value string) string {
	switch name {
	case "max.message.bytes":
		if n, err := strconv.Atoi(value); err == nil && n < p.max {
			return fmt.Sprintf("max.message.bytes is %d: Kafka will refuse longer messages; set it to %d", n, p.max)
		}
	case "message.timestamp.type":
		if !p.compact && value != "LogAppendTime" {
			return "message.timestamp.type is " + value + ": Kafka may remove or refuse messages of a sender with a wrong clock; set it to LogAppendTime"
		}
	case "cleanup.policy":
		if p.compact && value != p.policy() {
			return fmt.Sprintf("cleanup.policy is %s: Kafka will delete messages that must stay; set it to %s", value, p.policy())
		}
	}
	return ""
}
