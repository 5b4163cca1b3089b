package source

import "github.com/flank-tcm/flank/pkg/signal"

// Written returns how the recording at path is written, as far as its first rows show:
// what a layout needs to say under `recording`, without columns. It is empty for tables of
// text as layouts expect them, and for all other formats. Lines before the header are found again in each recording, unless skip says how many there are.
func Written(path string, skip int) (rec signal.Recording, err error) {
	f, err := formatOf(path, rec)
	if err != nil || f.New != nil {
		return rec, err
	}
	file, err := openText(path, signal.Recording{Skip: skip})
	if err != nil {
		return rec, err
	}
	defer file.Close()
	rec = file.(*textFile).dialect.recording()
	rec.Skip = skip
	return rec, nil
}
