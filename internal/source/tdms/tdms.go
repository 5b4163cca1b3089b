// Package tdms reads the files that LabVIEW and NI-DAQmx log: TDMS 2.0.
//
// A file is a chain of segments. The metadata of a segment name objects, which
// are the file, its groups and their channels; give them properties; and say,
// as a raw data index, how many values of which type a channel has in each
// chunk of the segment's raw data. A segment has as many chunks as fit before
// the next one. Where nothing has changed, metadata are left out, and a segment
// inherits the list of objects of the one before or an object its last index.
//
// Values of a chunk are stored channel after channel, or interleaved: one value
// of each channel, then the next of each. Data that DAQmx logs raw are
// interleaved in one or several buffers of fixed width, and a scaler says where
// in the width a channel's number is. Scales, written as properties, turn such
// numbers into a unit.
//
// [Open] reads the metadata of all segments; samples are read when they are
// asked for. Damaged files give an error that names the byte, except at the end
// of a file whose writer was stopped: what is whole before it is read.
//
// Sources: NI, "TDMS file Format Internal Structure" (2023); where it says
// nothing (DAQmx scalers, scales, unfinished segments), what npTDMS 1.13 does,
// against which this package is checked value by value.
package tdms

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/source/track"
)

// Format is TDMS.
var Format = track.Format{Name: "tdms", Endings: []string{".tdms"}, Magic: "TDSm", New: newFile}

// file is an open TDMS file: a [track.Contents] of its channels of numbers.
type file struct {
	name string
	in   io.ReaderAt
	size int64

	objects  map[string]*object
	order    []*object
	channels []*object // that can be read
	breaks   int       // places where values do not follow those before them
	aBreak   string    // the first
	track.Listing
}

// object is the file, a group or a channel.
type object struct {
	path           string
	group, channel string
	properties     map[string]value
	start          value    // the first wf_start_time
	begun          int64    // values before the last one
	index          rawIndex // the last one that was stated
	stated         bool     // there is one
	scale          scale
	pieces         []piece
	values         int64
	left           string // why the channel is left out
}

// newFile reads the metadata of a file of the given size; name names it in errors.
// The caller keeps in and closes it.
func newFile(in io.ReaderAt, size int64, name string) (track.Contents, error) {
	f := &file{name: name, in: in, size: size, objects: make(map[string]*object)}
	if err := f.readSegments(); err != nil {
		return nil, err
	}
	var unused []string
	for _, o := range f.order {
		if list := o.unused(); o.channel == "" && len(list) > 0 {
			unused = append(unused, fmt.Sprintf("%s %s", cmp.Or(o.group, "the file"), strings.Join(list, ", ")))
		}
		if o.channel == "" || !o.stated && o.values == 0 {
			continue
		}
		var err error
		if o.scale, err = f.scaleOf(o); err != nil && o.left == "" {
			o.left = err.Error()
		}
		if o.left != "" {
			f.Remark("channel %s/%s is left out: %s", o.group, o.channel, o.left)
			continue
		}
		if list := o.unused(); len(list) > 0 {
			unused = append(unused, fmt.Sprintf("channel %s/%s %s", o.group, o.channel, strings.Join(list, ", ")))
		}
		f.channels = append(f.channels, o)
		f.Infos = append(f.Infos, f.info(o))
	}
	if n := len(unused); n > 0 {
		f.Remark("properties that look like a calibration are not used: %s, %d in all; where numbers are not yet in the unit, write `gain` for the channel in the layout: value = gain · number, which is 1/S for a sensitivity of S a unit",
			strings.Join(unused[:min(n, 4)], "; "), n)
	}
	if f.breaks > 0 {
		f.Remark("values that do not follow those before them are read as if they did: %d times, the first is %s: record into another file each time", f.breaks, f.aBreak)
	}
	if len(f.channels) == 0 {
		if len(f.Remarks) > 0 {
			return nil, fmt.Errorf("tdms: %s: holds no channel that can be read (%s): record again, or export it again", name, strings.Join(f.Remarks, "; "))
		}
		return nil, fmt.Errorf("tdms: %s: holds no samples: record again", name)
	}
	return f, nil
}

// info is what the file says of a channel.
func (f *file) info(o *object) track.Info {
	info := track.Info{Name: o.channel, Group: o.group, Len: o.values, Unit: o.properties["unit_string"].text}
	if dt := o.properties["wf_increment"].number; dt > 0 {
		info.Rate = 1 / dt
	}
	// An acquisition without a clock counts from the epoch of LabVIEW, 1904.
	if at := o.start.time; !at.IsZero() && at.After(epoch) {
		info.Start = at.Add(time.Duration(o.properties["wf_start_offset"].number * 1e9))
	}
	return info
}

// Open returns a Reader of channels.
func (f *file) Open(tracks []int) (track.Reader, error) {
	rows := &rowCache{in: f.in}
	return f.SideBySide(tracks, func(i int) (track.Column, error) {
		return &column{file: f, object: f.channels[i], rows: rows}, nil
	})
}

// errorf returns an error about what is at a byte of the file.
func (f *file) errorf(at int64, format string, args ...any) error {
	return fmt.Errorf("tdms: %s: byte %d: %s", f.name, at, fmt.Sprintf(format, args...))
}

// paths are the paths of objects, such as /'group'/'channel', in which a quote is doubled.
var paths = regexp.MustCompile(`^(?:/'((?:[^']|'')*)')?(?:/'((?:[^']|'')*)')?/?$`)

// splitPath returns group and channel of a path. It returns empty strings for the file itself.
func splitPath(path string) (group, channel string, ok bool) {
	parts := paths.FindStringSubmatch(path)
	if parts == nil {
		return "", "", false
	}
	return strings.ReplaceAll(parts[1], "''", "'"), strings.ReplaceAll(parts[2], "''", "'"), true
}
