package source

import "github.com/flank-tcm/flank/pkg/signal"

// Written returns how the recording at path is written, as far as its first rows show:
// what a layout needs to say under `recording`, without columns. It is empty for tables of
// text as layouts expect them, and for all other formats.
func Written(path string) (rec signal.Recording, err error) {
	f, err := formatOf(path, rec)
	if err != nil || f.New != nil {
		return rec, err
	}
	file, err := openText(path, rec)
	if err != nil {
		return rec, err
	}
	defer file.Close()
	return file.(*textFile).dialect.recording(), nil
}
