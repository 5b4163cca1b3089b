package summary

import "go.etcd.io/bbolt"

// keySpectrum is the usual spectrum of a machine's tool, as pages keep it.
var keySpectrum = []byte("usual_spectrum")

// KeepUsualSpectrum keeps the usual spectrum of a machine's tool, in place of the one before. It does
// nothing for a machine that the store does not hold.
func (s *Store) KeepUsualSpectrum(name string, data []byte) error {
	id, ok := s.ids()[name]
	if !ok || len(data) > maxEvent {
		return nil
	}
	packed, err := pack(data)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.file.safely(func() error {
		return s.file.db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.Bucket(inMachines).CreateBucketIfNotExists(idKey(id))
			if err != nil {
				return err
			}
			return b.Put(keySpectrum, packed)
		})
	})
}

// UsualSpectrum returns the usual spectrum that was kept last for a machine, nil if there is none.
func (s *Store) UsualSpectrum(name string) (data []byte, err error) {
	id, ok := s.ids()[name]
	if !ok {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.file.get(id, nil, keySpectrum, func(v []byte) error {
		data, err = unpack(v)
		return err
	})
	return data, err
}
