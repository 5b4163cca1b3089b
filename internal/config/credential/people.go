package credential

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/flank-tcm/flank/internal/config"
)

// Role says what a person may do. The empty Role may do nothing.
type Role string

// The roles. Each may do what the one before it may.
const (
	Viewer   Role = "viewer"   // look
	Operator Role = "operator" // answer alarms, declare a tool new
	Engineer Role = "engineer" // take alarms out of use
)

// Roles lists every role, the one with the least rights first.
var Roles = []Role{Viewer, Operator, Engineer}

// Person is someone who may log in.
type Person struct {
	Name string
	Role Role
}

// peopleFile is a file of persons who may log in, each with the SHA-256 of a token. The file
// is read again when it has changed. A People is safe for concurrent use.
type peopleFile struct {
	file string

	mu   sync.Mutex
	all  []entry
	info fs.FileInfo // of the file when all was read; nil: it was not
	read time.Time   // when that was
}

// entry is one person as the file has them.
type entry struct {
	Name  string `yaml:"name"`
	Role  Role   `yaml:"role"`
	Token string `yaml:"token"` // hashPrefix and the hash in hexadecimal digits
}

const (
	hashPrefix = "sha256:"
	maxName    = 100     // bytes, as `by` of a command
	maxPeople  = 1 << 20 // bytes of the file
)

// OpenPeople reads a file of people. It reports a file that cannot be used.
func OpenPeople(file string) (*peopleFile, error) {
	p := &peopleFile{file: file}
	_, err := p.current()
	return p, err
}

// Find returns the person whose token has the given SHA-256, and whether there is one.
// It reports a file that cannot be used now.
func (p *peopleFile) Find(sum [sha256.Size]byte) (Person, bool, error) {
	all, err := p.current()
	if err != nil {
		return Person{}, false, err
	}
	var found *entry
	for i := range all {
		if subtle.ConstantTimeCompare([]byte(all[i].Token), []byte(hashText(sum))) == 1 {
			found = &all[i]
		}
	}
	if found == nil {
		return Person{}, false, nil
	}
	return Person{Name: found.Name, Role: found.Role}, true, nil
}

// settled is the age from which on a change of a file shows in its time.
const settled = 2 * time.Second

// current returns the entries of the file as it is now. The caller must not change them.
func (p *peopleFile) current() ([]entry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	info, err := os.Stat(p.file)
	if err != nil {
		p.info = nil
		return nil, missingPeople(p.file, err)
	}
	if p.info != nil && same(p.info, info) && p.info.Mode() == info.Mode() && p.read.Sub(info.ModTime()) > settled {
		return p.all, nil
	}
	p.info = nil
	now := time.Now()
	all, err := readPeople(p.file)
	if err != nil {
		return nil, err
	}
	p.all, p.info, p.read = all, info, now
	return all, nil
}

func missingPeople(file string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: make it with `monitor people add NAME --role operator --file %s`", err, file)
	}
	return err
}

// readPeople reads and checks a file of people. It refuses a file that everyone may read, or others change. A
// group may read it: that is how a service that may not change the file gets it.
func readPeople(file string) ([]entry, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, missingPeople(file, err)
	}
	if mode := info.Mode().Perm(); hasModes && mode&(0o007|0o020) != 0 {
		return nil, fmt.Errorf("%s: others may read or change who may log in (mode %04o): run `chmod g-w,o= %s`", file, mode, file)
	}
	if info.Size() > maxPeople {
		return nil, fmt.Errorf("%s: is %d bytes long, more than a file of people can be: name another file", file, info.Size())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parsePeople(text, file)
}

// parsePeople returns the entries of a file with the given text. Errors name file and line.
func parsePeople(text []byte, file string) ([]entry, error) {
	var c struct {
		People []entry `yaml:"people"`
	}
	if err := config.Decode(text, file, &c); err != nil {
		return nil, err
	}
	lines := config.LinesOf(text)
	line := func(i int) int { return lines[fmt.Sprintf("people[%d]", i)] }
	for i, e := range c.People {
		if key, err := e.check(); err != nil {
			at := line(i)
			if own, ok := lines[fmt.Sprintf("people[%d].%s", i, key)]; ok {
				at = own
			}
			return nil, fmt.Errorf("%s:%d: %s: %w", file, at, key, err)
		}
		for j, o := range c.People[:i] {
			switch {
			case strings.EqualFold(e.Name, o.Name):
				return nil, fmt.Errorf("%s:%d: name: %q is on line %d already: give each person another name", file, line(i), e.Name, line(j))
			case e.Token == o.Token:
				return nil, fmt.Errorf("%s:%d: token: %s and %s (line %d) have one token: remove one of them, and add the person again with `monitor people add`",
					file, line(i), e.Name, o.Name, line(j))
			}
		}
	}
	return c.People, nil
}

// check reports what is wrong with an entry, and under which key. No error quotes the token.
func (e entry) check() (key string, err error) {
	if err := checkName(e.Name); err != nil {
		return "name", err
	}
	if err := checkRole(e.Role); err != nil {
		return "role", err
	}
	digits, ok := strings.CutPrefix(e.Token, hashPrefix)
	if sum, err := hex.DecodeString(digits); !ok || err != nil || len(sum) != sha256.Size || strings.ToLower(digits) != digits {
		return "token", fmt.Errorf("must be %s and 64 hexadecimal digits in lower case, the hash of a token: remove this entry, and add the person again with `monitor people add`", hashPrefix)
	}
	return "", nil
}

func checkName(name string) error {
	if name == "" || len(name) > maxName || !utf8.ValidString(name) || strings.TrimSpace(name) != name ||
		strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("%.120q: must be 1 to %d bytes of printed characters, without blanks around it", name, maxName)
	}
	return nil
}

func checkRole(r Role) error {
	if !slices.Contains(Roles, r) {
		return fmt.Errorf("%.40q: must be viewer, operator or engineer", string(r))
	}
	return nil
}

func hashText(sum [sha256.Size]byte) string { return hashPrefix + hex.EncodeToString(sum[:]) }

// ListPeople returns the persons of a file, in its order.
func ListPeople(file string) ([]Person, error) {
	all, err := readPeople(file)
	people := make([]Person, len(all))
	for i, e := range all {
		people[i] = Person{Name: e.Name, Role: e.Role}
	}
	return people, err
}

// AddPerson adds a person to a file, which it makes if it is not there, and returns the
// person's token. The file holds only the hash: no one can read the token again.
func AddPerson(file string, p Person) (token string, err error) {
	if err := checkName(p.Name); err != nil {
		return "", fmt.Errorf("name %w", err)
	}
	if err := checkRole(p.Role); err != nil {
		return "", fmt.Errorf("role %w", err)
	}
	all, err := readPeople(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if i := indexOf(all, p.Name); i >= 0 {
		return "", fmt.Errorf("%s: %s is there already: remove that entry first, with `monitor people rm`, which ends the old token", file, all[i].Name)
	}
	token = NewToken()
	return token, writePeople(file, append(all, entry{p.Name, p.Role, hashText(sha256.Sum256([]byte(token)))}))
}

// RemovePerson removes a person from a file.
func RemovePerson(file, name string) error {
	all, err := readPeople(file)
	if err != nil {
		return err
	}
	i := indexOf(all, name)
	if i < 0 {
		return fmt.Errorf("%s: %q is not in it: `monitor people ls` lists who is", file, name)
	}
	return writePeople(file, slices.Delete(all, i, i+1))
}

func indexOf(all []entry, name string) int {
	return slices.IndexFunc(all, func(e entry) bool { return strings.EqualFold(e.Name, name) })
}

// NewToken returns a random token of more than 128 bits.
func NewToken() string { return rand.Text() }

const peopleHead = `# Who may log in to the page. Written by ` + "`monitor people`" + `, which keeps no other comments.
# The file holds hashes of tokens. Only the user of the monitor, or its group, may read it.
`

// writePeople replaces a file of people.
func writePeople(file string, all []entry) error {
	var b bytes.Buffer
	b.WriteString(peopleHead)
	b.WriteString("people:")
	if len(all) == 0 {
		b.WriteString(" []")
	}
	b.WriteString("\n")
	for _, e := range all {
		fmt.Fprintf(&b, "  - {name: %s, role: %s, token: %q}\n", config.Text(e.Name), e.Role, e.Token)
	}
	if err := config.WritePrivateFile(file, b.Bytes()); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
