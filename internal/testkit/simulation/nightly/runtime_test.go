//go:build synctestoverlay

package nightly

import _ "unsafe" // for the links

// changedRuntime is whether this program was built with the files of scripts/synctest-overlay.
const changedRuntime = true

// seedBubble gives the bubble that calls it random numbers of its own.
//
//go:linkname seedBubble runtime.simulationSeed
func seedBubble(seed uint64)

// runAlone has the runtime take no goroutine off the processor.
//
//go:linkname runAlone runtime.simulationAlone
func runAlone()
