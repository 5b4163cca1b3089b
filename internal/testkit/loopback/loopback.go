// Package loopback gives each process of tests names of this computer that no other process uses. Others listen at 127.0.0.1 many times
// a second: one would get, by chance, a port that a test has named and not opened yet, or closed to open it again.
package loopback

import (
	"fmt"
	"net"
	"os"
	"sync"
)

// Host returns this process's host number n, of 1 to 254. It is 127.0.0.1 where that is the only one, as on macOS.
func Host(n int) string {
	if !many() {
		return "127.0.0.1"
	}
	return own(n)
}

func own(n int) string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 1+pid>>8%250, pid%256, n)
}

var many = sync.OnceValue(func() bool {
	l, err := net.Listen("tcp", own(1)+":0")
	if err != nil {
		return false
	}
	l.Close()
	return true
})
