package client

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"sync"
	"time"
)

var errDead = errors.New("the process is dead")

// memDisk is a disk that can lose power. What was not flushed may be lost, write by write and name by name, in any
// combination. It can also stop before its n-th operation: from then on the process is as good as killed.
type memDisk struct {
	mu      sync.Mutex
	names   map[string]*inode
	stable  map[string]*inode // names that survive
	pending []nameChange
	locks   map[string]bool
	ops     int
	dieAt   int // 0 = never
	dead    bool
	fault   func(operation, path string) error // injected failures
	lag     time.Duration                      // of every flush
	slow    func(path string) time.Duration    // of a write
}

type nameChange struct {
	path string
	node *inode // nil = removed
}

type inode struct {
	data, stable []byte
	pending      []change
}

// change is a write, or a truncation when data is nil.
type change struct {
	at   int64
	data []byte
}

func (c change) apply(data []byte) []byte {
	end := int(c.at) + len(c.data)
	for len(data) < end {
		data = append(data, make([]byte, end-len(data))...)
	}
	if c.data == nil {
		return data[:c.at]
	}
	copy(data[c.at:], c.data)
	return data
}

func newMemDisk() *memDisk {
	return &memDisk{names: map[string]*inode{}, stable: map[string]*inode{}, locks: map[string]bool{}}
}

// step counts an operation; the lock is held.
func (d *memDisk) step(operation, path string) error {
	d.ops++
	if d.dead || d.ops == d.dieAt {
		d.dead = true
		return errDead
	}
	if d.fault != nil {
		return d.fault(operation, path)
	}
	return nil
}

// restart is the disk as the next process finds it. After a kill everything written is there; after a power cut only what
// was flushed is sure.
func (d *memDisk) restart(random *rand.Rand, powerCut bool) *memDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = true
	next := newMemDisk()
	next.lag = d.lag
	names := d.names
	if powerCut {
		names = d.stable
		for _, one := range d.pending {
			if random.IntN(2) == 0 {
				continue
			}
			if one.node == nil {
				delete(names, one.path)
			} else {
				names[one.path] = one.node
			}
		}
	}
	copies := map[*inode]*inode{}
	for path, node := range names {
		if copies[node] == nil {
			data := append([]byte(nil), node.data...)
			if powerCut {
				data = append([]byte(nil), node.stable...)
				for _, one := range node.pending {
					if random.IntN(2) == 0 {
						data = one.apply(data)
					}
				}
			}
			copies[node] = &inode{data: data, stable: append([]byte(nil), data...)}
		}
		next.names[path], next.stable[path] = copies[node], copies[node]
	}
	return next
}

func (d *memDisk) name(path string, node *inode) {
	if node == nil {
		delete(d.names, path)
	} else {
		d.names[path] = node
	}
	d.pending = append(d.pending, nameChange{path, node})
}

func (d *memDisk) lock(path string) (func(), error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step("lock", path); err != nil {
		return nil, err
	}
	if d.locks[path] {
		return nil, fmt.Errorf("%w: %s", ErrLocked, path)
	}
	d.locks[path] = true
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.locks, path)
	}, nil
}

func (d *memDisk) open(path string) (diskFile, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step("open", path); err != nil {
		return nil, err
	}
	if d.names[path] == nil {
		d.name(path, &inode{})
	}
	return &memFile{d, path, d.names[path]}, nil
}

func (d *memDisk) look(path string) (diskFile, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if node := d.names[path]; node != nil {
		return &memFile{d, path, node}, nil
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}

func (d *memDisk) create(path string) (diskFile, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step("create", path); err != nil {
		return nil, err
	}
	d.name(path, &inode{})
	return &memFile{d, path, d.names[path]}, nil
}

func (d *memDisk) rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step("rename", from); err != nil {
		return err
	}
	node := d.names[from]
	if node == nil {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	d.name(to, node)
	d.name(from, nil)
	return nil
}

func (d *memDisk) remove(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step("remove", path); err != nil {
		return err
	}
	if d.names[path] != nil {
		d.name(path, nil)
	}
	return nil
}

// wait is the time that a flush takes.
func (d *memDisk) wait() {
	if d.lag > 0 {
		<-time.After(d.lag)
	}
}

func (d *memDisk) syncDir(path string) error {
	d.wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step("syncDir", path); err != nil {
		return err
	}
	d.stable = map[string]*inode{}
	for name, node := range d.names {
		d.stable[name] = node
	}
	d.pending = nil
	return nil
}

type memFile struct {
	disk *memDisk
	path string
	node *inode
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if off >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.node.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	if f.disk.slow != nil {
		if d := f.disk.slow(f.path); d > 0 {
			<-time.After(d)
		}
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.disk.step("write", f.path); err != nil {
		return 0, err
	}
	one := change{off, append([]byte{}, p...)}
	f.node.data = one.apply(f.node.data)
	f.node.pending = append(f.node.pending, one)
	return len(p), nil
}

func (f *memFile) Truncate(size int64) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.disk.step("truncate", f.path); err != nil {
		return err
	}
	one := change{at: size}
	f.node.data = one.apply(f.node.data)
	f.node.pending = append(f.node.pending, one)
	return nil
}

func (f *memFile) Sync() error {
	f.disk.wait()
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.disk.step("sync", f.path); err != nil {
		return err
	}
	f.node.stable, f.node.pending = append([]byte(nil), f.node.data...), nil
	return nil
}

func (f *memFile) size() (int64, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return int64(len(f.node.data)), nil
}

func (f *memFile) Close() error { return nil }
