package model

import (
	"encoding/base64"
	"encoding/binary"
	"math"
)

// packFloats returns the base64 of float32, little-endian: values bit for bit.
func packFloats(values []float32) string {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return base64.StdEncoding.EncodeToString(b)
}

// unpackFloats returns what packFloats was given. Whole is false if there is a
// rest behind the last value.
func unpackFloats(text string) (values []float32, whole bool, err error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, false, err
	}
	values = make([]float32, len(b)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return values, len(b)%4 == 0, nil
}
