package git

import (
	"compress/zlib"
	"context"
	"crypto"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/hash"
)

// writePack writes objects as a pack, none as a difference from another, and
// none of them whole in memory.
func (s *Store) writePack(ctx context.Context, to io.Writer, objects []plumbing.Hash) error {
	sum := hash.New(crypto.SHA1)
	w := io.MultiWriter(to, sum)
	head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(objects))) //nolint:gosec // bounded by the limits of a snapshot
	if _, err := w.Write(head); err != nil {
		return err
	}
	z := zlib.NewWriter(w)
	for _, h := range objects {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.packOne(w, z, h); err != nil {
			return fmt.Errorf("packing %s: %w", h, err)
		}
	}
	_, err := to.Write(sum.Sum(nil))
	return err
}

func (s *Store) packOne(w io.Writer, z *zlib.Writer, h plumbing.Hash) error {
	o, err := s.storage.EncodedObject(plumbing.AnyObject, h)
	if err != nil {
		return err
	}
	r, err := o.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := w.Write(packHeader(o.Type(), o.Size())); err != nil {
		return err
	}
	z.Reset(w)
	_, err = io.Copy(z, r)
	return errors.Join(err, z.Close())
}

// packHeader is the type and the size: four bits of it in the first byte, then
// seven in each.
func packHeader(kind plumbing.ObjectType, size int64) []byte {
	rest := uint64(size) >> 4                    //nolint:gosec // sizes are not negative
	out := []byte{byte(kind)<<4 | byte(size&15)} //nolint:gosec // four bits
	for ; rest > 0; rest >>= 7 {
		out[len(out)-1] |= 0x80
		out = append(out, byte(rest&0x7f))
	}
	return out
}
