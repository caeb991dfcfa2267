//go:build linux

package memory

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/verbs/driver"
)

// Behind the count, the memfd of Reservations has a table of cards: short texts that processes of
// a host show to each other. A card is there for good once its process has published it.
//
//	0      count of reserved bytes
//	4096   cards of cardSize bytes: number of the process + 1 | length | text
//
// The card of process i has the first place from i on that was free, modulo the number of
// places. A process may die in Publish: then its card never has a length.
const (
	cardsOffset = reservationsSize
	cardSize    = 512
	cardHead    = 16

	// MaxCard is the greatest length of a card, in bytes.
	MaxCard = cardSize - cardHead
	// maxCards bounds the memory of the table.
	maxCards = 1024
)

var errNoPlace = errors.New("no place for the card of this process")

// places returns the number of cards for which there are places.
func (r *Reservations) places() int { return (len(r.mem.mem) - cardsOffset) / cardSize }

// card returns the two words and the text of a place.
func (r *Reservations) card(place int) []byte {
	return r.mem.mem[cardsOffset+place*cardSize:][:cardSize:cardSize]
}

// Publish shows text to all processes that share r, as the card of a process. A process publishes
// one card. It returns an error if there is no place.
func (r *Reservations) Publish(process int, text []byte) error {
	if r == nil || process < 0 || len(text) > MaxCard {
		return fmt.Errorf("memory: %w: card of %d bytes of process %d", driver.ErrInvalid, len(text), process)
	}
	for i := range r.places() {
		at := r.card((process + i) % r.places())
		if !wordAt(at).CompareAndSwap(0, int64(process)+1) {
			continue
		}
		padded := make([]byte, MaxCard)
		copy(padded, text)
		for n := 0; n < MaxCard; n += 8 {
			wordAt(at[cardHead+n:]).Store(int64(binary.NativeEndian.Uint64(padded[n:])))
		}
		wordAt(at[8:]).Store(int64(len(text))) // pairs with the load in Card
		return nil
	}
	return errNoPlace
}

// Card returns the card of a process, nil if it has published none. Other processes can write
// there: the caller checks what it reads.
func (r *Reservations) Card(process int) []byte {
	if r == nil || process < 0 {
		return nil
	}
	for i := range r.places() {
		at := r.card((process + i) % r.places())
		switch wordAt(at).Load() {
		case 0:
			return nil
		case int64(process) + 1:
			n := wordAt(at[8:]).Load()
			if n <= 0 || n > MaxCard {
				return nil
			}
			text := make([]byte, 0, MaxCard)
			for i := cardHead; i < cardSize; i += 8 {
				text = binary.NativeEndian.AppendUint64(text, uint64(wordAt(at[i:]).Load()))
			}
			return text[:n]
		}
	}
	return nil
}
