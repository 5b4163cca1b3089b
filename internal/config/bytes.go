package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bytes is an amount of data in a configuration, such as 250GB, 64GiB or 0. It is
// never negative.
type Bytes int64

var byteUnits = map[string]float64{
	"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

// UnmarshalYAML reads a number with a unit.
func (b *Bytes) UnmarshalYAML(n *yaml.Node) error {
	v, err := ParseBytes(n.Value)
	if err != nil || n.Kind != yaml.ScalarNode {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: `%s`: must be an amount of data with its unit, such as 250GB or 64GiB, or 0", n.Line, n.Value)}}
	}
	*b = v
	return nil
}

// ParseBytes reads a number with a unit, or 0.
func ParseBytes(text string) (Bytes, error) {
	digits := strings.TrimRight(text, "BTGMKki")
	v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil {
		return 0, err
	}
	unit, known := byteUnits[text[len(digits):]]
	if v *= unit; !known && v != 0 || !known && digits != "0" || !(v >= 0 && v < math.MaxInt64) {
		return 0, fmt.Errorf("config: %q is not an amount of data", text)
	}
	return Bytes(v), nil
}
