//go:build !linux

package archive

import (
	"errors"
	"fmt"
)

// exchange returns errors.ErrUnsupported: this system cannot exchange two folders in one step.
func exchange(_, b string) error { return fmt.Errorf("%s: %w", b, errors.ErrUnsupported) }
