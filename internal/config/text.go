package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
)

var plainText = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*$`)

// unprintable is what JSON may hold as it is and YAML may not.
var unprintable = regexp.MustCompile(`[\x{7f}-\x{9f}\x{feff}\x{fffe}\x{ffff}]`)

// Text returns text as a configuration says it, also within brackets.
func Text(text string) string {
	switch strings.ToLower(text) {
	case "y", "n", "yes", "no", "true", "false", "on", "off", "null":
	default:
		if plainText.MatchString(text) {
			return text
		}
	}
	b, err := json.Marshal(text)
	if err != nil {
		panic("config: text as JSON: " + err.Error()) // text always can be
	}
	return unprintable.ReplaceAllStringFunc(string(b), func(r string) string { return fmt.Sprintf("\\u%04x", []rune(r)[0]) })
}

// Duration returns a duration as people write it, without units that are zero: 8h, not 8h0m0s.
func Duration(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}
