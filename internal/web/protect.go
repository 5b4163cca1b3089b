package web

import (
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"iter"
	"math"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// Protection says who may use a server of pages, and from where.
type Protection struct {
	// Find returns the person whose token has a SHA-256, and whether there is one. The
	// guard asks for every request, so that tokens can be changed in place. nil: no one
	// can log in, and nothing can be changed.
	Find func(sum [sha256.Size]byte) (Person, bool, error)

	// ReadsNeedToken says that only people who have logged in see anything. The files of
	// the page itself, /livez, /readyz and /metrics stay open.
	ReadsNeedToken bool

	Notice string // lines that people see before they log in; empty: none

	Listen string      // address of the server: its host is one of the names of the page
	Hosts  []string    // more names of the page, without ports
	TLS    *tls.Config // nil: plain HTTP. The names of its certificate are names of the page

	// Audit is called for logins, commands and refused requests: who asked for what, and whether it was
	// accepted. It must not block. Texts in the record come from clients, without the tokens of
	// people in them. May be nil.
	Audit func(event.Audit)

	// Log is called for refused requests, but not for each of many, also at the same time. May be nil.
	Log func(Refusal)
}

// Refusal is a request that the guard refused.
type Refusal struct {
	Address  string // of the client; of IPv6 the network of 64 bits
	Reason   string // as tcm_page_refused_total counts it
	Detail   string // in ASCII without control characters; never a token
	Unlogged uint64 // refusals before this one that Log was not called for
}

// reason is why a request is refused.
type reason int

const (
	refusedHost        reason = iota // the Host header is not a name of the page
	refusedOrigin                    // another site's page sent it
	refusedToken                     // a wrong token
	refusedLogin                     // no token where one is needed
	refusedRole                      // the person's role does not allow it
	refusedSlowed                    // too many wrong tokens from this address before
	refusedStreams                   // the address has too many event streams
	refusedConnections               // the address, or the server, has too many connections
	refusedUnreadable                // the file of tokens cannot be read
	reasons
)

func (r reason) String() string {
	return [...]string{"host", "origin", "token", "login", "role", "slowed", "streams", "connections", "unreadable"}[r]
}

// Guard stands before the handlers of a server of pages. It finds out who asks, keeps
// sessions, and refuses what is not allowed or too much. Its methods are safe for
// concurrent use.
type Guard struct {
	Protection
	hosts    []string
	sessions sessions
	limits   limits
	origins  *http.CrossOriginProtection
	counts   [reasons]atomic.Uint64
	lines    lineBudget

	now     func() time.Time // replaced by tests
	recheck time.Duration    // how often streams ask whether their person may still look
	patient patience
}

// NewGuard returns a guard without sessions.
func NewGuard(p Protection) *Guard {
	g := &Guard{Protection: p, now: time.Now, recheck: 5 * time.Second, patient: defaultPatience, limits: newLimits(), origins: http.NewCrossOriginProtection()}
	g.hosts = append(g.hosts, "localhost")
	if host, _, err := net.SplitHostPort(p.Listen); err == nil {
		g.hosts = append(g.hosts, host)
	}
	if name, err := os.Hostname(); err == nil {
		short, _, _ := strings.Cut(name, ".")
		g.hosts = append(g.hosts, name, short)
	}
	for _, h := range p.Hosts {
		g.hosts = append(g.hosts, strings.Trim(h, "[]"))
	}
	g.hosts = slices.DeleteFunc(g.hosts, func(h string) bool { return h == "" })
	return g
}

// Refusals yields how many requests were refused for each reason.
func (g *Guard) Refusals() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for r := range reasons {
			if !yield(r.String(), g.counts[r].Load()) {
				return
			}
		}
	}
}

// refuse counts and logs a refused request.
func (g *Guard) refuse(address string, why reason, detail string) {
	g.counts[why].Add(1)
	if g.Log == nil || why == refusedLogin || why == refusedSlowed {
		return // a page that asks before its person has logged in, or the consequence of what was logged
	}
	if ok, unlogged := g.lines.take(g.now()); ok {
		g.Log(Refusal{Address: address, Reason: why.String(), Detail: detail, Unlogged: unlogged})
	}
}

// Handler returns next behind the guard, with three paths of the guard's own:
//
//	POST /api/login   begins a session: {"token":"…"}
//	POST /api/logout  ends it
//	GET /api/me       who asks: {"name","role","read","login"}
//
// A request says who asks by a bearer token, or by the cookie of a session. Every request
// that changes something needs one of them, and comes from the page itself.
func (g *Guard) Handler(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	for pattern, handler := range g.routes() {
		mux.Handle(pattern, handler)
	}
	mux.Handle("/", next)
	return secured(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(mux, w, r) }))
}

// routes returns what answers each pattern of the guard's own.
func (g *Guard) routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{"POST /api/login": g.serveLogin, "POST /api/logout": g.serveLogout, "GET /api/me": g.serveMe}
}

func (g *Guard) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	v := visit{guard: g, address: addressOf(r.RemoteAddr), how: event.ByNothing}
	if !g.boundBody(w, r) {
		return
	}
	if probe(r) {
		next.ServeHTTP(w, withVisit(r, v))
		return
	}
	if !g.isHost(r.Host) {
		g.refuse(v.address, refusedHost, "Host "+quote(r.Host))
		g.auditAccess(v, refusedHost)
		text(w, http.StatusMisdirectedRequest, fmt.Sprintf("%s is not a name of this page: add it to page.hosts in the configuration", quote(r.Host)))
		return
	}
	if err := g.origins.Check(r); err != nil {
		g.refuse(v.address, refusedOrigin, "Origin "+quote(r.Header.Get("Origin")))
		g.auditAccess(v, refusedOrigin)
		text(w, http.StatusForbidden, "this request comes from another site: use the page itself")
		return
	}
	p, ok := g.identify(w, r, v.address)
	if !ok {
		return
	}
	v.person, v.how = p.person, p.how()
	if v.person.Role == "" && g.needsPerson(r) {
		g.refuse(v.address, refusedLogin, r.Method)
		if !safe(r) { // a page reads before its person has logged in
			g.auditAccess(v, refusedLogin)
		}
		askLogin(w)
		return
	}
	r = withVisit(r, v)
	if r.URL.Path == "/api/events" && r.Method == http.MethodGet {
		g.serveStream(next, w, r, v.address, p)
		return
	}
	next.ServeHTTP(w, r)
}

// probe reports whether a request is one of programs that watch this one. They need no
// login, and may use any name of the computer.
func probe(r *http.Request) bool {
	return safe(r) && slices.Contains([]string{"/livez", "/readyz", "/metrics"}, r.URL.Path)
}

func safe(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// needsPerson reports whether a request is only for people who have logged in, of whom a role may still forbid some.
func (g *Guard) needsPerson(r *http.Request) bool {
	at := r.URL.Path
	switch {
	case g.Find == nil, at == "/api/login", at == "/api/logout", at == "/api/me":
		return false
	case !safe(r):
		return true
	case at == "/", strings.HasPrefix(at, "/static/") && path.Clean(at) == at:
		return false
	}
	return g.ReadsNeedToken
}

// isHost reports whether the Host header of a request is a name of the page. It may be any
// address in digits: a browser that was lured to another name does not send one.
func (g *Guard) isHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	if slices.ContainsFunc(g.hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
		return true
	}
	if g.TLS == nil || g.TLS.GetCertificate == nil || host == "" {
		return false
	}
	c, err := g.TLS.GetCertificate(&tls.ClientHelloInfo{ServerName: host})
	return err == nil && c.Leaf != nil && c.Leaf.VerifyHostname(host) == nil
}

// boundBody bounds size and time of a request's body. A request that only reads has none.
func (g *Guard) boundBody(w http.ResponseWriter, r *http.Request) bool {
	if r.ContentLength == 0 {
		return true
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(g.patient.body)) // a recorder in a test knows none
	if safe(r) {
		w.Header().Set("Connection", "close")
		text(w, http.StatusBadRequest, "a request that reads has no body")
		return false
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxOrder)
	return true
}

// proof is how a person has shown who they are.
type proof struct {
	person  Person
	sum     [sha256.Size]byte // of the token
	session string            // empty: by the token itself
}

// identify finds out who asks: the zero proof is someone who has not logged in. It answers
// a request with a wrong token itself and returns false.
func (g *Guard) identify(w http.ResponseWriter, r *http.Request, address string) (p proof, ok bool) {
	if g.Find == nil {
		return proof{}, true
	}
	if token, given := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); given {
		return g.try(w, address, token)
	}
	p, err := g.session(r)
	if err != nil && g.needsPerson(r) {
		g.unreadable(w, address, err)
		return proof{}, false
	}
	return p, true
}

// try looks for the person of a token. If there is none, it answers with the reason and
// returns false.
func (g *Guard) try(w http.ResponseWriter, address, token string) (p proof, ok bool) {
	if wait := g.limits.wait(address, g.now()); wait > 0 {
		g.refuse(address, refusedSlowed, "")
		g.auditLogin(address, refusedSlowed)
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
		text(w, http.StatusTooManyRequests, "too many wrong tokens came from your address: wait some seconds")
		return proof{}, false
	}
	sum := sha256.Sum256([]byte(token))
	person, found, err := g.Find(sum)
	if err != nil {
		g.unreadable(w, address, err)
		return proof{}, false
	}
	if !found {
		g.limits.fail(address, g.now())
		g.refuse(address, refusedToken, "wrong token")
		g.auditLogin(address, refusedToken)
		w.Header().Set("WWW-Authenticate", "Bearer")
		text(w, http.StatusUnauthorized, "this is not the token")
		return proof{}, false
	}
	return proof{person: person, sum: sum}, true
}

func (g *Guard) unreadable(w http.ResponseWriter, address string, err error) {
	g.refuse(address, refusedUnreadable, strconv.QuoteToASCII(err.Error()))
	g.auditLogin(address, refusedUnreadable)
	text(w, http.StatusServiceUnavailable, "the tokens of this program cannot be read: look at its log")
}

// still reports whether a proof counts now. A file of tokens that cannot be read at the
// moment proves nothing against it.
func (g *Guard) still(p proof) bool {
	if p.session != "" && !g.sessions.has(p.session, g.now()) {
		return false
	}
	_, found, err := g.Find(p.sum)
	return found || err != nil
}

func askLogin(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	text(w, http.StatusUnauthorized, "log in with your token")
}

// quote returns text of a client for logs and answers.
func quote(s string) string { return strconv.QuoteToASCII(s[:min(len(s), 100)]) }
