package archive

import (
	"cmp"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// escape returns a machine's name as a folder can have it, in the style of Hive: what is not a letter, a digit or one of
// "._-" is a percent sign with two hexadecimal digits for each byte.
func escape(machine string) string {
	var b strings.Builder
	for i := range len(machine) {
		c := machine[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// maxFolder is how many bytes the name of a machine's folder may have.
const maxFolder = 200

const (
	machineKey, dayKey = "machine=", "day="
	dayForm            = "2006-01-02"
	ending             = ".parquet"
)

// name is what the name of a file says: of a batch "part-PARTITION-FIRST-LAST-FILES-COLUMNS", of the merged rows of a day
// "day-PARTITION-FIRST-LAST-COLUMNS".
type name struct {
	topic, machine, day string
	partition           int
	first, last         int64
	files               int    // that the batch has; 0: merged
	columns             string // fingerprint
	size                int64
}

// folder returns the folder of the file, below the archive.
func (n name) folder() string {
	return filepath.Join(n.topic, machineKey+escape(n.machine), dayKey+n.day)
}

func (n name) path() string {
	if n.files == 0 {
		return filepath.Join(n.folder(), fmt.Sprintf("day-%d-%d-%d-%s%s", n.partition, n.first, n.last, n.columns, ending))
	}
	return filepath.Join(n.folder(), fmt.Sprintf("part-%d-%d-%d-%d-%s%s", n.partition, n.first, n.last, n.files, n.columns, ending))
}

// parseFolder reads the names of the two folders that a file lies in.
func (n *name) parseFolder(machine, day string) bool {
	text, ok := strings.CutPrefix(machine, machineKey)
	m, err := url.PathUnescape(text)
	if !ok || err != nil {
		return false
	}
	n.machine = m
	if n.day, ok = strings.CutPrefix(day, dayKey); !ok {
		return false
	}
	_, err = time.Parse(dayForm, n.day)
	return err == nil
}

// parse reads the name of a file. It is false for files of others.
func (n *name) parse(file string) bool {
	base, ok := strings.CutSuffix(file, ending)
	f := strings.Split(base, "-")
	merged := f[0] == "day" && len(f) == 5
	if !ok || !merged && (f[0] != "part" || len(f) != 6) {
		return false
	}
	var numbers []int64
	for _, s := range f[1 : len(f)-1] {
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil || v < 0 {
			return false
		}
		numbers = append(numbers, v)
	}
	n.partition, n.first, n.last, n.columns = int(numbers[0]), numbers[1], numbers[2], f[len(f)-1]
	if !merged {
		n.files = int(numbers[3])
	}
	return merged || n.files > 0
}

// Day returns the names of the folders of the machine and the day that the file at path lies in, empty if they are of others.
func Day(path string) string {
	day := filepath.Dir(path)
	machine := filepath.Dir(day)
	if !new(name).parseFolder(filepath.Base(machine), filepath.Base(day)) {
		return ""
	}
	return filepath.Join(filepath.Base(machine), filepath.Base(day))
}

// list returns the files of a topic, by machine, day, partition and offset. It removes what a run that was killed has left
// half written.
func list(dir, topic string) (all []name, err error) {
	root := filepath.Join(dir, topic)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		day := filepath.Dir(path)
		n := name{topic: topic}
		if filepath.Dir(filepath.Dir(day)) != root || !n.parseFolder(filepath.Base(filepath.Dir(day)), filepath.Base(day)) {
			return nil
		}
		if unfinished, ok := strings.CutPrefix(d.Name(), "."); ok && strings.Contains(unfinished, ending+".") {
			return os.Remove(path)
		}
		if !n.parse(d.Name()) {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		n.size = info.Size()
		all = append(all, n)
		return nil
	})
	if os.IsNotExist(err) {
		err = nil
	}
	slices.SortFunc(all, func(a, b name) int {
		return cmp.Or(cmp.Compare(a.machine, b.machine), cmp.Compare(a.day, b.day), cmp.Compare(a.partition, b.partition), cmp.Compare(a.first, b.first), cmp.Compare(a.columns, b.columns))
	})
	return all, err
}

// batch is the newest batch of a partition.
type batch struct {
	first, last int64
	files       int    // that it has
	found       int    // that are there
	day         string // its newest
	file        string // one of them
}

// newest returns the newest batch of each partition.
func newest(all []name) map[int]*batch {
	of := make(map[int]*batch)
	for _, n := range all {
		b := of[n.partition]
		if n.files > 0 && (b == nil || n.last > b.last) {
			b = &batch{first: n.first, last: n.last, files: n.files, file: n.path()}
			of[n.partition] = b
		}
		if b != nil && n.isOf(b) {
			b.found++
			b.day = max(b.day, n.day)
		}
	}
	return of
}

// isOf reports whether the file is one of a batch of its partition.
func (n name) isOf(b *batch) bool { return b != nil && n.files > 0 && n.last == b.last }

// Matches returns the files that a pattern names, in which ** stands for any folders, in order. A folder below which
// nothing can match is not opened: without ** in front of them, those are the machines and days that the pattern does not ask for.
func Matches(pattern string) (paths []string, err error) {
	at := strings.IndexAny(pattern, "*?[")
	if at < 0 || !strings.Contains(pattern, "**") {
		return filepath.Glob(pattern)
	}
	root := filepath.Dir(pattern[:at] + "x")
	parts := strings.Split(filepath.ToSlash(pattern), "/")
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		whole, begins := match(parts, strings.Split(filepath.ToSlash(path), "/"))
		switch {
		case d.IsDir() && !begins && path != root:
			return fs.SkipDir
		case !d.IsDir() && whole:
			paths = append(paths, path)
		}
		return nil
	})
	if os.IsNotExist(err) {
		err = nil
	}
	return paths, err
}

// match reports whether a path is as the pattern says, and whether what lies in a folder of this path may be.
func match(pattern, path []string) (whole, begins bool) {
	switch {
	case len(path) == 0:
		return strings.Trim(strings.Join(pattern, ""), "*") == "" && !slices.Contains(pattern, "*"), len(pattern) > 0
	case len(pattern) == 0:
		return false, false
	case pattern[0] == "**":
		w1, b1 := match(pattern[1:], path)
		w2, b2 := match(pattern, path[1:])
		return w1 || w2, b1 || b2
	}
	ok, err := filepath.Match(pattern[0], path[0])
	if err != nil || !ok {
		return false, false
	}
	return match(pattern[1:], path[1:])
}
