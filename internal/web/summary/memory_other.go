//go:build !linux

package summary

import "os"

// memoryFile returns a temporary file, and what removes it once it is closed.
func memoryFile() (f *os.File, remove func(), err error) {
	f, err = os.CreateTemp("", "flank-history-*.db")
	if err != nil {
		return nil, nil, err
	}
	name := f.Name()
	return f, func() { os.Remove(name) }, nil
}
