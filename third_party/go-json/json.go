// Package json stands in for github.com/goccy/go-json, which Arrow uses to print arrays as JSON and to read them, and
// which Flank never does. These are the names that Arrow's internal/json uses, from encoding/json, as Arrow itself has them
// when TinyGo compiles it. The original took a tenth of the processor's time to compile a program, and two megabytes in each.
package json

import "encoding/json"

// The types of encoding/json.
type (
	Decoder            = json.Decoder
	Encoder            = json.Encoder
	Marshaler          = json.Marshaler
	Delim              = json.Delim
	UnmarshalTypeError = json.UnmarshalTypeError
	Number             = json.Number
	Unmarshaler        = json.Unmarshaler
	RawMessage         = json.RawMessage
)

// The functions of encoding/json.
var (
	Marshal    = json.Marshal
	Unmarshal  = json.Unmarshal
	NewDecoder = json.NewDecoder
	NewEncoder = json.NewEncoder
)
