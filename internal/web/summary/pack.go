package summary

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"
)

// maxEvent is the most bytes that an event has; a monitor's are smaller.
const maxEvent = 1 << 20

// pack compresses the JSON of an event.
func pack(text []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// unpack is the inverse of pack. Any bytes are safe to try.
func unpack(b []byte) ([]byte, error) {
	r := flate.NewReader(bytes.NewReader(b))
	text, err := io.ReadAll(io.LimitReader(r, maxEvent+1))
	if err == nil && len(text) > maxEvent {
		err = errors.New("too long")
	}
	return text, err
}
