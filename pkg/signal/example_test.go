package signal_test

import (
	"fmt"

	"github.com/flank-tcm/flank/pkg/signal"
)

// A layout is an ordered list of channels. Channels of one rate are a group, and arrive in
// the same blocks. Two layouts whose fingerprints agree serve the same model.
func ExampleLayout() {
	layout, err := signal.NewLayout("drill", []signal.Channel{
		{Name: "head", Kind: signal.Vibration, Unit: "g", Rate: 20000},
		{Name: "thrust", Kind: signal.Force, Unit: "N", Rate: 100},
		{Name: "torque", Kind: signal.Torque, Unit: "N·m", Rate: 100},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, group := range layout.Groups() {
		for _, channel := range group.Channels {
			fmt.Println(group.Rate, layout.Channels()[channel].Name)
		}
	}
	fmt.Println(layout.Match(signal.GunDrill()) == nil)
	// Output:
	// 20000 head
	// 100 thrust
	// 100 torque
	// false
}
