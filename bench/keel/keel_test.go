package keel

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const header = "@relation r\n@attribute a real [0, 1]\n@attribute b {M, F, I}\n@attribute class {positive, negative}\n@inputs a, b\n@outputs class\n@data\n"

func TestRead(t *testing.T) {
	want := "[a b{M F I}] class{positive negative} [0.5 2 -3 0] [1 0]"
	for name, text := range map[string]string{
		"as KEEL writes":           header + "0.5, I, negative\n-3, M, positive\n",
		"CRLF, no end of line":     strings.ReplaceAll(header, "\n", "\r\n") + "0.5,I,negative\r\n-3,M,positive",
		"keywords of any case":     strings.NewReplacer("@rel", "@REL", "@att", "@Att", "@data", "@DATA", "real", "REAL").Replace(header) + "0.5,I,negative\n-3,M,positive",
		"blanks and tabs":          strings.NewReplacer(" {", "  \t{ ", "}", " }  ", "real [", "real[", "a, b", "a ,\tb").Replace(header) + " 0.5 , I , negative \n\n-3\t,M,positive",
		"no blank before the list": strings.ReplaceAll(header, " {", "{") + "0.5,I,negative\n-3,M,positive",
		"comments":                 "% found\n" + strings.ReplaceAll(header, "\n", " % so\n") + "0.5,I,negative % one\n%0,I,negative\n-3,M,positive",
		"a byte order mark":        "\ufeff" + header + "0.5,I,negative\n-3,M,positive",
		"an empty item":            strings.Replace(header, "a, b", "a,,b", 1) + "0.5,I,negative\n-3,M,positive",
		"@input and @output":       strings.NewReplacer("@inputs", "@input", "@outputs", "@output").Replace(header) + "0.5,I,negative\n-3,M,positive",
		"no @inputs, no @outputs":  strings.NewReplacer("@inputs a, b\n", "", "@outputs class\n", "").Replace(header) + "0.5,I,negative\n-3,M,positive",
		"numbers of any form":      header + "5.E-1,I,negative\n-3.0,M,positive",
		"no bounds":                strings.Replace(header, "real [0, 1]", "integer", 1) + ".5,I,negative\n-3,M,positive",
		"quotes":                   strings.NewReplacer("attribute a", "attribute 'a'", "{M,", "{ 'M' ,").Replace(header) + "0.5,'I',negative\n-3,M,'positive'",
		"columns that are neither": strings.Replace(header, "@attribute class", "@attribute id real\n@attribute class", 1) + "0.5,I,what,negative\n-3,M,?,positive",
	} {
		f, err := read(strings.NewReader(text), "x.dat")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := f.String(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func (f *file) String() string {
	one := func(a attribute) string {
		if a.nominal() {
			return a.Name + "{" + strings.Join(a.Values, " ") + "}"
		}
		return a.Name
	}
	var inputs []string
	for _, a := range f.Inputs {
		inputs = append(inputs, one(a))
	}
	return fmt.Sprint(inputs, " ", one(f.Output), " ", f.Data, " ", f.Class)
}

// Attributes without a type take their values from the rows; what is missing is
// NaN, whether nominal or not; quoted names keep their blanks, commas and percents.
func TestReadOpen(t *testing.T) {
	f, err := read(strings.NewReader("@attribute 'colour, 100 %'\n@attribute v real\n@attribute c\n@data\n'dark % red', ?, no\n<NULL>, 1, yes\nblue, <null>, no"), "x.dat")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := f.String(), "[colour, 100 %{dark % red blue} v] c{no yes} [0 NaN NaN 1 1 NaN] [0 1 0]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestReadErrors(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":                {"", "x.dat:0: no @data"},
		"no rows":                {header, "x.dat:7: no rows"},
		"another format":         {"a,b,c\n1,2,3\n", `x.dat:1: "a,b,c" is before @data`},
		"an unknown keyword":     {"@attributes a real\n", `x.dat:1: "@attributes" is not a keyword`},
		"a short row":            {header + "0.5, negative\n", "x.dat:8: 2 values, but 3 attributes"},
		"a word for a number":    {header + "0.5,I,negative\nhigh,I,negative\n", `x.dat:9: attribute "a": "high" is not a number`},
		"infinity":               {header + "Inf,I,negative\n", `"Inf" is not a number`},
		"beyond float32":         {header + "1e40,I,negative\n", `"1e40" is not a number`},
		"hexadecimal":            {header + "0x1p3,I,negative\n", `"0x1p3" is not a number`},
		"an undeclared value":    {header + "0.5,X,negative\n", `x.dat:8: attribute "b": "X" is none of its values {M, F, I}`},
		"an undeclared class":    {header + "0.5,I,Positive\n", `attribute "class": "Positive" is none of`},
		"a missing class":        {header + "0.5,I,?\n", `x.dat:8: output "class" is missing`},
		"a class that is number": {"@attribute a real\n@attribute b real\n@data\n1,2\n", `x.dat:3: output "b" is a number`},
		"an unknown input":       {strings.Replace(header, "a, b", "a, B", 1) + "1,I,negative", `x.dat:7: input "B" is not an attribute`},
		"an input twice":         {strings.Replace(header, "a, b", "a, a", 1) + "1,I,negative", `x.dat:7: attribute "a" is an input and something else too`},
		"the output as input":    {strings.Replace(header, "a, b", "a, class", 1) + "1,I,negative", `attribute "class" is an input and`},
		"two outputs":            {strings.Replace(header, "@outputs class", "@outputs b, class", 1) + "1,I,negative", "2 outputs"},
		"no closing brace":       {"@attribute b {M, F\n", `x.dat:1: the values of attribute "b"`},
		"no closing bracket":     {"@attribute b real [0, 1\n", `x.dat:1: the range of attribute "b"`},
		"a value twice":          {"@attribute b {M, M}\n", `lists its value "M" twice`},
		"no values":              {"@attribute b { }\n", "may have no value"},
		"no name":                {"@attribute\n", "without a name"},
		"an open quote":          {"@attribute 'b real\n", "is not closed"},
		"a name twice":           {"@attribute b real\n@attribute b real\n", `x.dat:2: attribute "b" is declared twice`},
		"an unknown type":        {"@attribute b numeric\n", `is of type "numeric"`},
		"one attribute":          {"@attribute b {x, y}\n@data\nx\n", "after 1 attributes"},
		"a line without end":     {header + strings.Repeat("1", maxLine+1), "x.dat:8: "},
	} {
		if _, err := read(strings.NewReader(tc.text), "x.dat"); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, tc.want)
		}
	}
}

// What is written in any of the allowed ways is read as it was meant.
func TestReadWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		blank := rapid.SampledFrom([]string{"", " ", "\t", "  "})
		end := rapid.SampledFrom([]string{"\n", "\r\n", " % 1, 2\n", "\n\n"})
		columns := rapid.IntRange(1, 5).Draw(t, "columns")
		rows := rapid.IntRange(1, 20).Draw(t, "rows")
		var b strings.Builder
		for j := range columns {
			fmt.Fprintf(&b, "@attribute a%d%s", j, rapid.SampledFrom([]string{" real", " INTEGER [0, 9]", " real[-1,1]"}).Draw(t, "type")+end.Draw(t, "end"))
		}
		b.WriteString("@attribute c {n,p}\n@data\n")
		var data []float64
		var class []int
		for range rows {
			for range columns {
				v := float64(rapid.Float32Range(-1e6, 1e6).Draw(t, "value"))
				text := fmt.Sprint(v)
				if rapid.IntRange(0, 9).Draw(t, "missing") == 0 {
					v, text = math.NaN(), "?"
				}
				data = append(data, v)
				b.WriteString(blank.Draw(t, "blank") + text + blank.Draw(t, "blank") + ",")
			}
			c := rapid.IntRange(0, 1).Draw(t, "class")
			class = append(class, c)
			b.WriteString(blank.Draw(t, "blank") + "np"[c:c+1] + end.Draw(t, "end"))
		}
		f, err := read(strings.NewReader(b.String()), "x.dat")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(f.Data, f.Class), fmt.Sprint(data, class); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add(header + "0.5, I, negative\n-3, M, positive\n")
	f.Add("@attribute 'colour, 100 %'\n@attribute v real\n@attribute c\n@data\n'dark % red', ?, no\n<NULL>, 1, yes\n")
	f.Add(strings.ReplaceAll(header, " ", "") + "1,2,3")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := read(strings.NewReader(text), "x.dat")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "x.dat:") {
				t.Errorf("%v does not say where", err)
			}
			return
		}
		if len(file.Class) == 0 || len(file.Data) != len(file.Class)*len(file.Inputs) {
			t.Fatalf("%d rows of %d inputs: %d values", len(file.Class), len(file.Inputs), len(file.Data))
		}
		for i, v := range file.Data {
			a := file.Inputs[i%len(file.Inputs)]
			if math.IsInf(v, 0) || a.nominal() && !math.IsNaN(v) && (v < 0 || int(v) >= len(a.Values)) {
				t.Fatalf("value %v of %+v", v, a)
			}
		}
		for _, c := range file.Class {
			if c < 0 || c >= len(file.Output.Values) {
				t.Fatalf("class %d of %+v", c, file.Output)
			}
		}
	})
}
