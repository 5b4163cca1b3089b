package config

import (
	"encoding/json"
	"regexp"
	"strings"
)

var plainText = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*$`)

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
	return string(b)
}
