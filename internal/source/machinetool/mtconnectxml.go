package machinetool

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// document is what an agent answered: an MTConnectStreams document.
type document struct {
	Created string // creationTime of the header: when the agent wrote the document
	Items   []item // in the order of the document
}

// item is what the agent says of one data item.
type item struct {
	ID      string // dataItemId
	Name    string // may be empty
	Type    string // as the element is called: ToolNumber
	SubType string // ACTUAL; may be empty
	Text    string // empty if it is UNAVAILABLE
}

// refusal is an MTConnectError document: the agent says what it does not like.
type refusal struct {
	Text string // such as "NO_DEVICE: Could not find the device 'x'"
}

func (r *refusal) Error() string {
	return "the MTConnect agent refuses: " + r.Text + ": correct `url` and `device`"
}

const (
	maxDepth    = 64      // of elements; the standard's have up to 10
	maxElements = 100_000 // of a document
	maxItems    = 20_000  // of a document
	maxText     = 4096    // bytes of a text that is kept
)

const unavailable = "UNAVAILABLE"

// parse reads an MTConnectStreams document of any version, element by element. The error
// of an MTConnectError document is a *Refusal. A document type declaration is refused, so
// that the document cannot define entities. The caller bounds r.
func parse(r io.Reader) (*document, error) {
	p := parser{dec: xml.NewDecoder(r)}
	for {
		token, err := p.dec.Token()
		if errors.Is(err, io.EOF) && p.root != "" {
			return p.end()
		}
		if err == nil {
			err = p.take(token)
		}
		if err != nil {
			line, _ := p.dec.InputPos()
			return nil, fmt.Errorf("the answer is not from an MTConnect agent: line %d: %w", line, err)
		}
	}
}

// parser is a document on its way.
type parser struct {
	dec   *xml.Decoder
	root  string // the first element
	depth int
	all   int // elements so far
	doc   document

	item    *item // that is open, at depth at; nil if none
	at      int
	text    strings.Builder
	refused []string
}

func (p *parser) take(token xml.Token) error {
	switch t := token.(type) {
	case xml.Directive:
		return errors.New("it has a document type declaration, which MTConnect does not use")
	case xml.StartElement:
		return p.open(t)
	case xml.EndElement:
		p.close(t.Name.Local)
	case xml.CharData:
		if p.text.Len()+len(t) <= maxText {
			p.text.Write(t)
		}
	}
	return nil
}

func (p *parser) open(t xml.StartElement) error {
	p.depth++
	p.all++
	p.text.Reset()
	switch name := t.Name.Local; {
	case p.depth > maxDepth:
		return fmt.Errorf("its elements are nested more than %d deep", maxDepth)
	case p.all > maxElements:
		return fmt.Errorf("it has more than %d elements: name one `device`", maxElements)
	case p.depth == 1 && name != "MTConnectStreams" && name != "MTConnectError":
		return fmt.Errorf("it begins with %.40q, not with MTConnectStreams", name)
	case p.depth == 1:
		p.root = name
	case name == "Header" && p.depth == 2:
		p.doc.Created = attribute(t, "creationTime")
	case name == "Error" && p.root == "MTConnectError":
		p.refused = append(p.refused, attribute(t, "errorCode")+": ")
	case attribute(t, "dataItemId") != "":
		return p.add(t)
	}
	return nil
}

func attribute(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name && a.Name.Space == "" && len(a.Value) <= maxText {
			return a.Value
		}
	}
	return ""
}

func (p *parser) add(t xml.StartElement) error {
	if len(p.doc.Items) >= maxItems {
		return fmt.Errorf("it has more than %d data items: name one `device`", maxItems)
	}
	p.doc.Items = append(p.doc.Items, item{
		ID: attribute(t, "dataItemId"), Name: attribute(t, "name"), Type: t.Name.Local, SubType: attribute(t, "subType"),
	})
	p.item, p.at = &p.doc.Items[len(p.doc.Items)-1], p.depth
	return nil
}

func (p *parser) close(name string) {
	text := strings.TrimSpace(p.text.String())
	switch {
	case p.item != nil && p.at == p.depth:
		if text != unavailable {
			p.item.Text = text
		}
		p.item = nil
	case name == "Error" && len(p.refused) > 0:
		p.refused[len(p.refused)-1] += text
	}
	p.text.Reset()
	p.depth--
}

func (p *parser) end() (*document, error) {
	if p.root == "MTConnectError" {
		return nil, &refusal{fmt.Sprintf("%.300s", strings.Join(p.refused, "; "))}
	}
	return &p.doc, nil
}

// find returns the last observation of a data item. An item is named by
// its dataItemId, its name or its type; a type may have a subtype behind a colon, as in
// RotaryVelocity:ACTUAL. Of several observations of one item, as in an answer to /sample,
// the last counts. It is an error if no item or several fit.
func (d *document) find(name string) (item, error) {
	typ, sub, _ := strings.Cut(name, ":")
	typ = strings.ReplaceAll(typ, "_", "")
	for _, fits := range []func(item) bool{
		func(i item) bool { return i.ID == name },
		func(i item) bool { return i.Name == name },
		func(i item) bool {
			return strings.EqualFold(i.Type, typ) && (sub == "" || strings.EqualFold(i.SubType, sub))
		},
	} {
		found := map[string]item{}
		var ids []string
		for _, item := range d.Items {
			if !fits(item) {
				continue
			}
			if _, seen := found[item.ID]; !seen {
				ids = append(ids, item.ID+" ("+strings.TrimSuffix(item.Type+":"+item.SubType, ":")+")")
			}
			found[item.ID] = item
		}
		if len(found) > 1 {
			return item{}, fmt.Errorf("%q: %d data items fit: name one by its id: %s", name, len(found), list(ids))
		}
		for _, item := range found {
			return item, nil
		}
	}
	var have []string
	for _, item := range d.Items {
		if one := item.ID + " (" + item.Type + ")"; !slices.Contains(have, one) && len(have) <= maxListed {
			have = append(have, one)
		}
	}
	return item{}, fmt.Errorf("%q: the MTConnect agent has no such data item: name one by id, name or type: %s", name, list(have))
}

// maxListed is how many items an error lists.
const maxListed = 20

func list(ids []string) string {
	more := ""
	if len(ids) > maxListed {
		ids, more = ids[:maxListed], ", …"
	}
	return fmt.Sprintf("%.2000s", strings.Join(ids, ", ")) + more
}
