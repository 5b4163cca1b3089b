package cli

import (
	"errors"
	"fmt"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
)

// Kafka is the part of a configuration that says how to reach the broker.
type Kafka struct {
	Brokers []string `yaml:"brokers"`
	TLS     *struct {
		CA         string `yaml:"ca"`
		Cert       string `yaml:"cert"`
		Key        string `yaml:"key"`
		ServerName string `yaml:"server_name"`
	} `yaml:"tls"`
	SASL *struct { // SCRAM-SHA-512
		User         string `yaml:"user"`
		PasswordFile string `yaml:"password_file"`
		PasswordEnv  string `yaml:"password_env"`
	} `yaml:"sasl"`
}

// Bus returns how the program called client reaches the broker. Paths begin at
// the folder of the configuration file.
func (k Kafka) Bus(file, client string) (bus.Config, error) {
	c := bus.Config{Brokers: k.Brokers, ClientID: client}
	if len(k.Brokers) == 0 {
		return c, fmt.Errorf("%s: kafka: brokers: name at least one, for example [\"127.0.0.1:9092\"]", file)
	}
	beside := func(path string) string {
		if path == "" {
			return ""
		}
		return config.Beside(file, path)
	}
	if t := k.TLS; t != nil {
		c.TLS = &bus.TLS{CAFile: beside(t.CA), CertFile: beside(t.Cert), KeyFile: beside(t.Key), ServerName: t.ServerName}
	}
	if s := k.SASL; s != nil {
		if k.TLS == nil {
			return c, fmt.Errorf("%s: kafka: sasl: %w", file, errors.New("without `tls` whoever listens can try passwords: add `tls: {ca: FILE}`, or `tls: {}` for the certificates of the system"))
		}
		c.Login = &bus.Login{User: s.User, PasswordFile: beside(s.PasswordFile), PasswordEnv: s.PasswordEnv}
	}
	return c, nil
}
