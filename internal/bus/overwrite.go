//go:build !race

package bus

func overwrite([]byte) {}
