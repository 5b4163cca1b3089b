package model

import (
	"encoding/base64"
	"encoding/binary"
)

// appended returns b with the bytes of numbers behind it, little-endian.
func appended[E float32 | float64](b []byte, numbers []E) []byte {
	b, err := binary.Append(b, binary.LittleEndian, numbers)
	if err != nil {
		panic("model: " + err.Error()) // all of one size
	}
	return b
}

// taken fills numbers from the front of b, which is long enough, and returns the rest.
func taken[E float32 | float64](b []byte, numbers []E) []byte {
	n, err := binary.Decode(b, binary.LittleEndian, numbers)
	if err != nil {
		panic("model: " + err.Error())
	}
	return b[n:]
}

// packFloats returns the base64 of float32, little-endian: values bit for bit.
func packFloats(values []float32) string {
	return base64.StdEncoding.EncodeToString(appended(nil, values))
}

// unpackFloats returns what packFloats was given. Whole is false if there is a
// rest behind the last value.
func unpackFloats(text string) (values []float32, whole bool, err error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, false, err
	}
	values = make([]float32, len(b)/4)
	return values, len(taken(b, values)) == 0, nil
}
