package broker

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/flank-tcm/flank/internal/bus"
)

func TestStartRefused(t *testing.T) {
	dir := t.TempDir()
	b, err := Start(dir, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for name, tc := range map[string]struct {
		dir, addr string
		want      []string
	}{
		"locked folder": {dir, "127.0.0.1:0", []string{dir, errLocked.Error(), "folder of its own"}},
		"busy port":     {t.TempDir(), b.Addr(), []string{b.Addr(), "address already in use", "choose another address"}},
		"no port":       {t.TempDir(), "127.0.0.1", []string{"127.0.0.1:9092"}},
		"a plant's":     {t.TempDir(), "broker.plant.example:9092", []string{"other computers may reach it"}},
		"every address": {t.TempDir(), "0.0.0.0:0", []string{"other computers may reach it"}},
	} {
		b, err := Start(tc.dir, tc.addr)
		if err == nil {
			b.Close()
			t.Errorf("%s: no error", name)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v: lacks %q", name, err, want)
			}
		}
		if errors.Is(err, errLocked) != (name == "locked folder") {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.Close()
	b, err = Start(dir, "127.0.0.1:0")
	if err != nil {
		t.Fatalf("after Close: %v", err)
	}
	b.Close()
}

// The file that shows a kill exists while a broker runs, and not afterwards.
// It stays if the broker could not write everything, so that the next start mends the files.
func TestBrokerMark(t *testing.T) {
	dir := t.TempDir()
	full := filepath.Join(dir, "kafka", "meta.json.tmp") // a folder where kfake writes a file
	for life, fails := range []bool{false, true, false} {
		b, err := Start(dir, "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(b.mark); err != nil {
			t.Errorf("life %d: %v", life, err)
		}
		if fails {
			err = os.Mkdir(full, 0o700)
		} else if life > 0 {
			err = os.Remove(full)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); (err != nil) != fails {
			t.Errorf("life %d, closed: %v", life, err)
		}
		if _, err := os.Stat(b.mark); os.IsNotExist(err) == fails {
			t.Errorf("life %d, closed: %v", life, err)
		}
	}
}

// A request that is too long or of an unknown kind ends its connection and nothing else.
func TestBrokerGuards(t *testing.T) {
	b, err := Start(t.TempDir(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	request := func(size uint32, key, version int16) []byte {
		r := binary.BigEndian.AppendUint32(nil, size)
		r = binary.BigEndian.AppendUint16(r, uint16(key))
		r = binary.BigEndian.AppendUint16(r, uint16(version))
		return append(r, 0, 0, 0, 1)
	}
	for name, sent := range map[string][]byte{
		"4 GiB":                    binary.BigEndian.AppendUint32(nil, 1<<32-1),
		"4 GiB to write":           request(1<<32-1, 0, 9),
		"a long question":          request(maxRequest+1, 3, 9),
		"no request at all":        request(0, 3, 9),
		"an unknown request":       request(8, 999, 0),
		"a negative one":           request(8, -1, 0),
		"a web browser's question": []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
	} {
		c, err := net.Dial("tcp", b.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(append(sent, make([]byte, 64)...)); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if n, err := c.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %d bytes, %v: want the connection closed", name, n, err)
		}
		c.Close()
	}
	if err := bus.Probe(t.Context(), b.Config("test")); err != nil {
		t.Error(err)
	}
}

// A member waits no longer than a session for others that do not join again.
func TestRebalanceIsShort(t *testing.T) {
	b, err := Start(t.TempDir(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var got []int32
	b.Cluster().ControlKey(int16(kmsg.JoinGroup), func(req kmsg.Request) (kmsg.Response, error, bool) {
		got = append(got, req.(*kmsg.JoinGroupRequest).RebalanceTimeoutMillis)
		return nil, nil, false
	})
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for _, asked := range []int32{3_000, 30_000} {
		req := kmsg.NewPtrJoinGroupRequest()
		req.Group, req.ProtocolType, req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = "g", "consumer", 6_000, asked
		if _, err := cl.Request(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 2 || got[0] != 3_000 || got[1] != mostRebalance || mostRebalance >= int32(bus.SessionTimeout.Milliseconds()) {
		t.Errorf("the broker waits %v ms", got)
	}
}
