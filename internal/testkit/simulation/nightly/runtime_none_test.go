//go:build !synctestoverlay

package nightly

const changedRuntime = false

func seedBubble(uint64) {}
func runAlone()         {}
