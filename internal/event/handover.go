package event

// HandoverType is the CloudEvents type of a handover.
const HandoverType = "io.tcm.handover.v1"

// Handover is a message from one owner of a partition to another one of the same group, on
// the topic of commands. When the topics get more partitions, the windows of a machine go to
// another partition, and its state has to follow. The owner of the new partition asks the
// owner of an old one, which answers when it has judged what lies there.
type Handover struct {
	ID         string `json:"id"` // of the question; its answer has the same
	Group      string `json:"group"`
	Machine    string `json:"machine"`
	Answer     bool   `json:"answer"`
	From       int    `json:"from"`       // the old partition: a question lies there
	To         int    `json:"to"`         // the new partition: an answer lies there
	Partitions int    `json:"partitions"` // of the topic of windows, as the sender knows it

	// Of a question: the answer has to wait until the old partition is judged up to these
	// offsets, and Known says that the new partition has the machine's state already.
	Windows  int64 `json:"windows,omitempty"`
	Features int64 `json:"features,omitempty"`
	Known    bool  `json:"known,omitempty"`

	// Of an answer: the state records of the machine were in the old partition, and were
	// moved to the new one in the same transaction.
	Moved bool `json:"moved,omitempty"`
}
