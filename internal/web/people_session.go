package web

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// Bounds of sessions.
const (
	sessionLife      = 12 * time.Hour
	maxSessions      = 1024
	sessionsOfAToken = 64
)

// sessions are the browsers that have logged in. They end with the program.
type sessions struct {
	mu  sync.Mutex
	all map[string]session // by the SHA-256 of the cookie
}

// session is one browser that has logged in. It counts for as long as its token does.
type session struct {
	sum  [sha256.Size]byte // of the token
	ends time.Time
}

// begin returns the cookie of a new session. Where there are too many, of this token or
// in all, the oldest ends.
func (s *sessions) begin(sum [sha256.Size]byte, now time.Time) (cookie string) {
	var id [32]byte
	rand.Read(id[:]) // never fails
	cookie = base64.RawURLEncoding.EncodeToString(id[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[string]session)
	}
	maps.DeleteFunc(s.all, func(_ string, one session) bool { return !now.Before(one.ends) })
	age := func(a, b string) int { return s.all[a].ends.Compare(s.all[b].ends) }
	all := slices.SortedFunc(maps.Keys(s.all), age)
	own := slices.DeleteFunc(slices.Clone(all), func(key string) bool { return s.all[key].sum != sum })
	switch {
	case len(own) >= sessionsOfAToken:
		delete(s.all, own[0])
	case len(all) >= maxSessions:
		delete(s.all, all[0])
	}
	s.all[keyOf(cookie)] = session{sum: sum, ends: now.Add(sessionLife)}
	return cookie
}

// find returns a session by its key.
func (s *sessions) find(key string, now time.Time) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.all[key]
	return one, ok && now.Before(one.ends)
}

func (s *sessions) has(key string, now time.Time) bool {
	_, ok := s.find(key, now)
	return ok
}

func (s *sessions) end(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, key)
}

func keyOf(cookie string) string {
	sum := sha256.Sum256([]byte(cookie))
	return string(sum[:])
}

// cookieName returns the name of the cookie of a session. Browsers send cookies to every
// port of a host: programs on one host must not overwrite each other's.
func cookieName(r *http.Request) string {
	name := "flank_session"
	if r.TLS != nil {
		name = "__Host-" + name
	}
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err == nil {
			name += "_" + port
		}
	}
	return name
}

// session returns who the session of a request belongs to, the zero proof if it has none.
func (g *Guard) session(r *http.Request) (proof, error) {
	c, err := r.Cookie(cookieName(r))
	if err != nil {
		return proof{}, nil
	}
	key := keyOf(c.Value)
	one, ok := g.sessions.find(key, g.now())
	if !ok {
		return proof{}, nil
	}
	person, found, err := g.Find(one.sum)
	if err != nil {
		return proof{}, err
	}
	if !found {
		g.sessions.end(key) // the person was removed, or has another token
		return proof{}, nil
	}
	return proof{person: person, sum: one.sum, session: key}, nil
}

// me is who asks, and what the page asks of people.
type me struct {
	Name  string `json:"name"`  // empty: not logged in, or by the token that people share
	Role  string `json:"role"`  // viewer, operator or engineer; empty: not logged in
	Read  string `json:"read"`  // open, or token: one must log in to see anything
	Login bool   `json:"login"` // whether people can log in

	Notice string `json:"notice,omitempty"` // lines to show before a login
}

func (g *Guard) serveMe(w http.ResponseWriter, r *http.Request) { g.writeMe(w, who(r)) }

func (g *Guard) writeMe(w http.ResponseWriter, p Person) {
	m := me{Name: p.Name, Role: string(p.Role), Read: "open", Login: g.Find != nil, Notice: g.Notice}
	if g.ReadsNeedToken {
		m.Read = "token"
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Write(encode(m))
}

func (g *Guard) serveLogin(w http.ResponseWriter, r *http.Request) {
	if g.Find == nil {
		text(w, http.StatusNotFound, "no one can log in here: name page.people or page_token in the configuration")
		return
	}
	var body struct {
		Token string `json:"token"`
	}
	if !decode(w, r, &body) {
		return
	}
	p, ok := g.try(w, addressOf(r.RemoteAddr), body.Token)
	if !ok {
		return
	}
	g.audit(event.Audit{Action: event.Login, Actor: visit{person: p.person, how: p.how(), address: addressOf(r.RemoteAddr)}.actor(), Outcome: event.Accepted})
	g.sessions.end(ownKey(r)) // the one that the new cookie replaces
	http.SetCookie(w, g.cookie(r, g.sessions.begin(p.sum, g.now()), int(sessionLife.Seconds())))
	g.writeMe(w, p.person)
}

func (g *Guard) serveLogout(w http.ResponseWriter, r *http.Request) {
	if v := visitOf(r); v.person.Role != "" {
		g.audit(event.Audit{Action: event.Logout, Actor: v.actor(), Outcome: event.Accepted})
	}
	g.sessions.end(ownKey(r))
	http.SetCookie(w, g.cookie(r, "", -1))
	w.WriteHeader(http.StatusNoContent)
}

func (g *Guard) cookie(r *http.Request, value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: cookieName(r), Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
	}
}

// ownKey returns the key of the session that a request names, "" if it names none.
func ownKey(r *http.Request) string {
	c, err := r.Cookie(cookieName(r))
	if err != nil {
		return ""
	}
	return keyOf(c.Value)
}
