package tdms

import "fmt"

// fixture is a file with what it holds.
type fixture struct {
	name   string
	file   []byte
	values map[string][]float64 // by group/channel
}

func ramp(from, n int) (x []float64) {
	for i := range n {
		x = append(x, float64(from+i))
	}
	return x
}

func join(xs ...[]float64) (all []float64) {
	for _, x := range xs {
		all = append(all, x...)
	}
	return all
}

func int16s(x []float64) (out []int16) {
	for _, v := range x {
		out = append(out, int16(v))
	}
	return out
}

func linear(slope, intercept float64) []prop {
	return []prop{
		{"NI_Scaling_Status", "unscaled"}, {"NI_Number_Of_Scales", uint32(2)},
		{"NI_Scale[1]_Scale_Type", "Linear"}, {"NI_Scale[1]_Linear_Slope", slope},
		{"NI_Scale[1]_Linear_Y_Intercept", intercept}, {"NI_Scale[1]_Linear_Input_Source", uint32(0)},
	}
}

// table is a scale that looks numbers up.
func table(at int, from, to []float64) []prop {
	key := func(name string) string { return fmt.Sprintf("NI_Scale[%d]_Table_%s", at, name) }
	props := []prop{
		{"NI_Number_Of_Scales", uint32(at + 1)}, {fmt.Sprintf("NI_Scale[%d]_Scale_Type", at), "Table"}, {key("Input_Source"), uint32(rawInput)},
		{key("Pre_Scaled_Values_Size"), uint32(len(from))}, {key("Scaled_Values_Size"), uint32(len(to))},
	}
	for i, v := range from {
		props = append(props, prop{key(fmt.Sprintf("Pre_Scaled_Values[%d]", i)), v})
	}
	for i, v := range to {
		props = append(props, prop{key(fmt.Sprintf("Scaled_Values[%d]", i)), v})
	}
	return props
}

// interleave puts rows together, of which each has one value of every channel.
func interleave(xs ...[]int16) (out []int16) {
	for i := range xs[0] {
		for _, x := range xs {
			out = append(out, x[i])
		}
	}
	return out
}

// fixtures are files for every feature that can be read. npTDMS reads the same
// from them, see bench/peers/formats.
func fixtures() []fixture {
	const a, b, text = "/'g'/'a'", "/'g'/'b'", "/'g'/'text'"
	var fs []fixture
	add := func(name string, file []byte, values map[string][]float64) {
		fs = append(fs, fixture{name, file, values})
	}
	for _, big := range []bool{false, true} {
		of := func(name string) string {
			if big {
				return name + ", big endian"
			}
			return name
		}
		n := func() *build { return &build{big: big} }

		w := n()
		w.segment(tocNewList, []obj{{path: "/"}, {path: "/'g'"}, {path: a, index: w.values(kindInt16, 3)}, {path: b, index: w.values(kindFloat64, 2)}},
			w.raw([]int16{1, -2, 3}, []float64{0.5, -0.25}))
		add(of("one chunk"), w.out.Bytes(), map[string][]float64{"g/a": {1, -2, 3}, "g/b": {0.5, -0.25}})

		w = n()
		w.segment(tocNewList, []obj{{path: a, index: w.values(kindInt16, 3)}, {path: b, index: w.values(kindFloat64, 2)}},
			w.raw([]int16{1, 2, 3}, []float64{0.5, 0.25}, []int16{4, 5, 6}, []float64{0.75, 1}))
		w.segment(0, nil, w.raw([]int16{7, 8, 9}, []float64{1.5, 2}))
		w.segment(0, []obj{{path: a, index: w.values(kindInt16, 1)}}, w.raw([]int16{10}, []float64{3, 4}, []int16{11}, []float64{5, 6}))
		w.segment(0, []obj{{path: b}}, w.raw([]int16{12, 13}))
		w.segment(tocNewList, []obj{{path: b, index: w.same()}, {path: a, index: w.same()}}, w.raw([]float64{7, 8}, []int16{14}))
		w.segment(tocNewList, []obj{{path: "/", props: []prop{{"wf_samples", int32(1)}}}}, nil)
		add(of("chunks and inherited lists"), w.out.Bytes(), map[string][]float64{"g/a": ramp(1, 14), "g/b": {0.5, 0.25, 0.75, 1, 1.5, 2, 3, 4, 5, 6, 7, 8}})

		w = n()
		w.segment(tocNewList|tocInterleaved, []obj{{path: a, index: w.values(kindInt16, 3)}, {path: b, index: w.values(kindUint8, 3)}},
			w.raw(int16(1), uint8(200), int16(2), uint8(201), int16(3), uint8(202), int16(4), uint8(203), int16(5), uint8(204), int16(6), uint8(205)))
		add(of("interleaved"), w.out.Bytes(), map[string][]float64{"g/a": ramp(1, 6), "g/b": ramp(200, 6)})

		w = n()
		w.segment(tocNewList, []obj{
			{path: "/'g'/'i8'", index: w.values(kindInt8, 1)}, {path: "/'g'/'u8'", index: w.values(kindUint8, 1)},
			{path: "/'g'/'i16'", index: w.values(kindInt16, 1)}, {path: "/'g'/'u16'", index: w.values(kindUint16, 1)},
			{path: "/'g'/'i32'", index: w.values(kindInt32, 1)}, {path: "/'g'/'u32'", index: w.values(kindUint32, 1)},
			{path: "/'g'/'i64'", index: w.values(kindInt64, 1)}, {path: "/'g'/'u64'", index: w.values(kindUint64, 1)},
			{path: "/'g'/'f32'", index: w.values(kindFloat32, 1)}, {path: "/'g'/'f64'", index: w.values(kindFloat64, 1)},
			{path: "/'g'/'f32u'", index: w.values(kindFloat32Unit, 1)}, {path: "/'g'/'f64u'", index: w.values(kindFloat64Unit, 1)},
			{path: "/'g'/'bool'", index: w.values(kindBool, 2)},
		}, w.raw(int8(-1), uint8(255), int16(-300), uint16(65535), int32(-70000), uint32(4e9), int64(-1<<40), uint64(1<<60), float32(0.1), 0.1, float32(2), 3.0, []byte{0, 1}))
		add(of("every type"), w.out.Bytes(), map[string][]float64{
			"g/i8": {-1}, "g/u8": {255}, "g/i16": {-300}, "g/u16": {65535}, "g/i32": {-70000}, "g/u32": {4e9}, "g/i64": {-1 << 40}, "g/u64": {1 << 60},
			"g/f32": {float64(float32(0.1))}, "g/f64": {0.1}, "g/f32u": {2}, "g/f64u": {3}, "g/bool": {0, 1},
		})

		w = n()
		w.segment(tocNewList, []obj{
			{path: text, index: w.texts(2, 8+5)}, {path: a, index: w.values(kindInt16, 2)}, {path: "/'g'/'t'", index: w.values(kindTime, 1)}, {path: b, index: w.values(kindInt16, 1)},
		}, w.raw(uint32(2), uint32(5), []byte("abcde"), []int16{1, 2}, make([]byte, 16), int16(9)))
		add(of("text and times are left out"), w.out.Bytes(), map[string][]float64{"g/a": {1, 2}, "g/b": {9}})

		// Two buffers, as of two devices; the second runs at half the rate.
		w = n()
		s := func(k kind, buffer int, offset int64, id uint32) []scaler {
			return []scaler{{kind: k, buffer: buffer, offset: offset, id: id}}
		}
		w.segment(tocNewList|tocInterleaved|1<<7, []obj{
			{path: a, index: w.daqmx(formatChanging, 4, s(kindInt16, 0, 0, 0), 6, 2), props: append(linear(0.5, 1), prop{"unit_string", "g"})},
			{path: b, index: w.daqmx(formatChanging, 4, s(kindInt32, 0, 2, 0), 6, 2), props: linear(2, -1)},
			{path: "/'g'/'c'", index: w.daqmx(formatChanging, 2, s(kindUint16, 1, 0, 0), 6, 2), props: linear(1, 0)},
		}, w.raw(int16(1), int32(10), int16(2), int32(20), int16(3), int32(30), int16(4), int32(40), uint16(7), uint16(8),
			int16(5), int32(50), int16(6), int32(60), int16(7), int32(70), int16(8), int32(80), uint16(9), uint16(10)))
		add(of("DAQmx, two buffers"), w.out.Bytes(), map[string][]float64{
			"g/a": {1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5}, "g/b": {19, 39, 59, 79, 99, 119, 139, 159}, "g/c": {7, 8, 9, 10},
		})

		w = n()
		line := func(bit int) []scaler { return []scaler{{kind: kindUint8, offset: 1, bit: bit}} }
		w.segment(tocNewList|tocInterleaved|1<<7, []obj{
			{path: a, index: w.daqmx(digitalLine, 3, line(0), 2), props: []prop{{"NI_Number_Of_Scales", uint32(1)}}},
			{path: b, index: w.daqmx(digitalLine, 3, line(5), 2), props: []prop{{"NI_Number_Of_Scales", uint32(1)}}},
		}, []byte{0xff, 0x01, 0xff, 0x20, 0xff, 0x21})
		add(of("DAQmx, digital lines"), w.out.Bytes(), map[string][]float64{"g/a": {1, 0, 1}, "g/b": {0, 1, 1}})

		w = n()
		w.segment(tocNewList, []obj{
			{path: a, index: w.values(kindInt16, 3), props: []prop{
				{"NI_Number_Of_Scales", uint32(2)},
				{"NI_Scale[0]_Scale_Type", "Polynomial"}, {"NI_Scale[0]_Polynomial_Coefficients_Size", uint32(3)}, {"NI_Scale[0]_Polynomial_Coefficients[0]", 1.0},
				{"NI_Scale[0]_Polynomial_Coefficients[1]", 0.5}, {"NI_Scale[0]_Polynomial_Coefficients[2]", 0.25}, {"NI_Scale[0]_Polynomial_Input_Source", uint32(rawInput)},
				{"NI_Scale[1]_Scale_Type", "Linear"}, {"NI_Scale[1]_Linear_Slope", 10.0}, {"NI_Scale[1]_Linear_Y_Intercept", -1.0}, {"NI_Scale[1]_Linear_Input_Source", uint32(0)},
			}},
			{path: b, index: w.values(kindInt16, 3), props: []prop{
				{"NI_Scaling_Status", "scaled"}, {"NI_Number_Of_Scales", uint32(1)}, {"NI_Scale[0]_Scale_Type", "Linear"},
				{"NI_Scale[0]_Linear_Slope", 10.0}, {"NI_Scale[0]_Linear_Y_Intercept", 0.0},
			}},
			{path: "/'h'", props: []prop{{"NI_Number_Of_Scales", uint32(1)}, {"NI_Scale[0]_Scale_Type", "Linear"}, {"NI_Scale[0]_Linear_Slope", 2.0}, {"NI_Scale[0]_Linear_Y_Intercept", 0.5}}},
			{path: "/'h'/'of the group'", index: w.values(kindInt16, 2)},
			{path: "/'h'/'of itself'", index: w.values(kindInt16, 2), props: []prop{
				{"NI_Scale[0]_Scale_Type", "AdvancedAPI"}, {"NI_Scale[1]_Scale_Type", "Polynomial"}, {"NI_Scale[1]_Polynomial_Coefficients[0]", 0.0}, {"NI_Scale[1]_Polynomial_Coefficients[1]", 1.0},
				{"NI_Scale[1]_Polynomial_Coefficients[2]", 0.0}, {"NI_Scale[1]_Polynomial_Coefficients[3]", 2.0}, {"NI_Scale[1]_Polynomial_Input_Source", uint32(0)},
			}},
		}, w.raw([]int16{0, 1, 2}, []int16{1, 2, 3}, []int16{1, 2}, []int16{1, -2}))
		add(of("scales"), w.out.Bytes(), map[string][]float64{
			"g/a": {9, 16.5, 29}, "g/b": {1, 2, 3}, "h/of the group": {2.5, 4.5}, "h/of itself": {3, -18},
		})

		w = n()
		w.segment(tocNewList, []obj{
			{path: a, index: w.values(kindInt16, 6), props: table(0, []float64{-1, 0, 2.5, 10}, []float64{5, 1, 0.3, 7})},
			{path: b, index: w.values(kindFloat64, 4), props: append(table(0, []float64{3, 2, 0}, []float64{1, 10, 100}), prop{"NI_Number_Of_Scales", uint32(2)},
				prop{"NI_Scale[1]_Scale_Type", "Linear"}, prop{"NI_Scale[1]_Linear_Slope", 2.0}, prop{"NI_Scale[1]_Linear_Y_Intercept", 1.0}, prop{"NI_Scale[1]_Linear_Input_Source", uint32(0)})},
			{path: "/'g'/'one'", index: w.values(kindInt8, 2), props: table(0, []float64{4}, []float64{9})},
		}, w.raw([]int16{-7, -1, 0, 1, 5, 11}, []float64{-1, 1, 2.5, 9}, []int8{1, 5}))
		add(of("tables"), w.out.Bytes(), map[string][]float64{"g/a": {5, 5, 1, 0.72, 2.533333333333333, 7}, "g/b": {201, 111, 12, 3}, "g/one": {9, 9}})

		w = n()
		w.segment(tocNewList, []obj{{path: "/'it''s'/'PXI1Slot2/ai0'", index: w.values(kindFloat32, 1)}, {path: "/'x'/''''", index: w.values(kindInt8, 1)}}, w.raw(float32(1), int8(2)))
		add(of("quotes in names"), w.out.Bytes(), map[string][]float64{"it's/PXI1Slot2/ai0": {1}, "x/'": {2}})

		// Interrupted writers. What is whole is read.
		w = n()
		w.segment(tocNewList, []obj{{path: a, index: w.values(kindInt16, 3)}, {path: b, index: w.values(kindInt16, 2)}}, w.raw([]int16{1, 2, 3}, []int16{101, 102}))
		at := w.out.Len()
		w.segment(0, nil, w.raw([]int16{4, 5, 6}, []int16{103, 104}, []int16{7, 8, 9}, []int16{105, 106}))
		add(of("unfinished, whole"), unfinished(w.out.Bytes(), at, 0), map[string][]float64{"g/a": ramp(1, 9), "g/b": ramp(101, 6)})
		add(of("unfinished, within the second channel"), unfinished(w.out.Bytes(), at, 1), map[string][]float64{"g/a": ramp(1, 9), "g/b": ramp(101, 5)})
		add(of("unfinished, within the first channel"), unfinished(w.out.Bytes(), at, 7), map[string][]float64{"g/a": ramp(1, 7), "g/b": ramp(101, 4)})
		add(of("cut off"), w.out.Bytes()[:w.out.Len()-7], map[string][]float64{"g/a": ramp(1, 7), "g/b": ramp(101, 4)})
		add(of("cut off in a lead-in"), w.out.Bytes()[:at+20], map[string][]float64{"g/a": ramp(1, 3), "g/b": ramp(101, 2)})

		w = n()
		w.segment(tocNewList|tocInterleaved, []obj{{path: a, index: w.values(kindInt16, 2)}, {path: b, index: w.values(kindInt16, 2)}}, w.raw(interleave(int16s(ramp(1, 5)), int16s(ramp(101, 5)))))
		add(of("unfinished rows"), unfinished(w.out.Bytes(), 0, 1), map[string][]float64{"g/a": ramp(1, 4), "g/b": ramp(101, 4)})

		w = n()
		w.segment(tocNewList|tocInterleaved|1<<7, []obj{
			{path: a, index: w.daqmx(formatChanging, 4, s(kindInt16, 0, 0, 0), 4), props: linear(1, 0)},
			{path: b, index: w.daqmx(formatChanging, 4, s(kindInt16, 0, 2, 0), 4), props: linear(1, 0)},
		}, w.raw(interleave(int16s(ramp(1, 7)), int16s(ramp(101, 7)))))
		add(of("unfinished DAQmx"), unfinished(w.out.Bytes(), 0, 3), map[string][]float64{"g/a": ramp(1, 6), "g/b": ramp(101, 6)})

		w = n()
		w.segment(tocNewList, []obj{{path: a, index: w.values(kindInt16, 20_000)}, {path: b, index: w.values(kindInt16, 20_000)}},
			w.raw(int16s(ramp(0, 20_000)), int16s(ramp(-20_000, 20_000)), int16s(ramp(0, 20_000)), int16s(ramp(-20_000, 20_000))))
		w.segment(tocNewList|tocInterleaved, []obj{{path: a, index: w.values(kindInt16, 15_000)}, {path: b, index: w.values(kindInt16, 15_000)}}, w.raw(interleave(int16s(ramp(0, 15_000)), int16s(ramp(5, 15_000)))))
		add(of("more than a buffer"), w.out.Bytes(), map[string][]float64{
			"g/a": join(ramp(0, 20_000), ramp(0, 20_000), ramp(0, 15_000)), "g/b": join(ramp(-20_000, 20_000), ramp(-20_000, 20_000), ramp(5, 15_000)),
		})
	}
	return fs
}
