package archive

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// exchange gives each of two folders the place of the other, in one step. It returns errors.ErrUnsupported where the disk
// cannot.
func exchange(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("%s: %w", b, errors.ErrUnsupported)
	}
	return err
}
