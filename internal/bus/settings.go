package bus

import (
	"errors"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/config/credential"
)

// Settings is the part of a configuration file that says how to reach Kafka.
type Settings struct {
	Brokers []string          `yaml:"brokers"`
	TLS     *credential.TLS   `yaml:"tls"`
	SASL    *credential.Login `yaml:"sasl"` // SCRAM-SHA-512
}

// Config returns how the program called client reaches Kafka. Paths begin at the
// folder of the configuration file. For unusable settings it returns a config.KeyError.
func (s Settings) Config(file, client string) (Config, error) {
	c := Config{Brokers: s.Brokers, ClientID: client}
	if len(s.Brokers) == 0 {
		return c, &config.KeyError{Key: "brokers", Err: errors.New("name at least one, for example [\"127.0.0.1:9092\"]")}
	}
	if s.TLS != nil {
		c.TLS = &TLS{TLS: *s.TLS.Resolve(file)}
	}
	if s.SASL != nil {
		if s.TLS == nil {
			return c, &config.KeyError{Key: "sasl", Err: errors.New("without `tls` anyone on the network can try passwords: add `tls: {ca: FILE}`, or `tls: {}` for the certificates of the system")}
		}
		c.Login = new(s.SASL.Resolve(file))
	}
	return c, nil
}

// Load is Config for the key kafka of the file: its errors name file and line.
func (s Settings) Load(file, client string) (Config, error) {
	c, err := s.Config(file, client)
	if err != nil {
		return c, config.Locate(file, config.Under("kafka", err))
	}
	return c, nil
}
