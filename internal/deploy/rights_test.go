package deploy

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/testkit/kafkatest"
)

// The trainer's rights in deploy/kafka/acls.md are enough to roll a model out, the monitor's
// to follow, and the monitor may not write.
func TestRights(t *testing.T) {
	if kafkatest.Version() == "" {
		t.Skip("FLANK_KAFKA names no version of Apache Kafka: make e2e-kafka does")
	}
	k, dir, all := kafkatest.StartSecure(t), t.TempDir(), trained()
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte("s3cret-of-the-plant\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	as := func(user string) bus.Config {
		return bus.Config{Brokers: []string{k.Addr}, ClientID: user, TLS: &bus.TLS{TLS: credential.TLS{CA: k.CAFile()}}, Login: &credential.Login{User: user, PasswordFile: password}}
	}
	for _, user := range []string{"trainer", "monitor"} {
		k.User(t, user, "s3cret-of-the-plant")
		k.GrantDocumented(t, user)
	}
	cert, key := k.Issue(t, "admin", time.Now().Add(time.Hour)).WriteFiles(t, dir, "admin")
	admin := bus.Config{Brokers: []string{k.MTLS}, TLS: &bus.TLS{TLS: credential.TLS{CA: k.CAFile(), Cert: cert, Key: key}}}
	if _, err := bus.Apply(testContext(t), admin, 1, 1); err != nil {
		t.Fatal(err)
	}
	w := writer(as("trainer"), anna)
	publish(t, w, all.a)
	promotion(t, w, Promotion{Model: all.a.ID(), For: "**"})
	follow(t, as("monitor"), trusting(ofAnna)).until("champion", func(v View) bool { return len(v.Set.Deployments()) == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := writer(as("monitor"), anna).Retire(ctx, "**", "", ""); err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "lacks the right") {
		t.Error(err)
	}
}
