//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package client

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// renamesOpen is true where an open, locked file can be renamed: nobody else gets its lock between the two.
const renamesOpen = true

// openOwn opens a regular file that nobody but this user, or who rules its folder anyway, can have put there. In a folder such as
// /tmp others may lay a link to a file that is precious to this user, a pipe that never answers, or a file of their own that they change
// after it was verified; kernels refuse some of that, in sticky folders and by setting. With O_CREATE a missing file is made.
func openOwn(path string, flags int, mode fs.FileMode) (*os.File, error) {
	if flags&os.O_CREATE != 0 {
		file, err := os.OpenFile(path, flags|os.O_EXCL, mode)
		if !errors.Is(err, fs.ErrExist) {
			return file, err
		}
	}
	// O_NONBLOCK: to open a pipe must not wait for who writes to it.
	file, err := os.OpenFile(path, flags&^os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK) { // the latter on FreeBSD
		return nil, errors.New("it is a symbolic link")
	}
	if err != nil {
		return nil, err
	}
	if err := own(file, path); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// own checks an open file.
func own(file *os.File, path string) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("it is no regular file (%s)", info.Mode().Type())
	}
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	one, fine := info.Sys().(*syscall.Stat_t)
	ruler, known := folder.Sys().(*syscall.Stat_t)
	if !fine || !known {
		return nil
	}
	return owned(one.Uid, ruler.Uid, uint32(os.Geteuid()), folder.Mode())
}

// owned is the rule: a file of another user than me is fine where he is the folder's owner or where only that one can make files.
func owned(file, folder, me uint32, mode fs.FileMode) error {
	if file == me || file == folder || mode.Perm()&0o022 == 0 {
		return nil
	}
	return errors.New("it belongs to another user, who could change it; remove it or choose another folder")
}

// onlyName refuses a file that has another name too: writing to it would write to that.
func onlyName(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if one, fine := info.Sys().(*syscall.Stat_t); fine && one.Nlink > 1 {
		return errors.New("it is the same file as another (a hard link)")
	}
	return nil
}

// lockNamed opens and locks the file of a name. The holder before may have removed or renamed the file after it was opened here: a
// lock on that would be of another name, or of none.
func lockNamed(path string, open func() (*os.File, error)) (*os.File, error) {
	for {
		file, err := open()
		if err != nil {
			return nil, err
		}
		if err := lockOpen(file); err != nil {
			_ = file.Close()
			return nil, err
		}
		ours, err := file.Stat()
		if err == nil {
			var named os.FileInfo
			if named, err = os.Lstat(path); err == nil && os.SameFile(ours, named) {
				return file, nil
			}
		}
		_ = file.Close()
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
}
