package board

import "encoding/binary"

// Lengths travel in lists: one for each member, and the longest behind them.
const lengthSize = 8

func putLength(list []byte, i, length int) {
	binary.NativeEndian.PutUint64(list[lengthSize*i:], uint64(length))
}

// lengthAt returns a length that another member wrote.
func lengthAt(list []byte, i int) (int, error) {
	length := int(binary.NativeEndian.Uint64(list[lengthSize*i:]))
	if length < 0 || length > 1<<48 {
		return 0, ErrCorrupt
	}
	return length, nil
}

// listLengths writes the lengths of all blocks and returns the longest.
func (b *Board) listLengths(list []byte, blocks table) int {
	for m := range b.peers {
		putLength(list, m, blocks.len(m))
	}
	longest := blocks.longest(b.n)
	putLength(list, b.n, longest)
	return longest
}

// compare returns the longest length of the list that a member put in turn k,
// if it says for this member's block what this one expects.
func (b *Board) compare(m int, k uint64, mine int) (int, error) {
	list := b.got(m, k, (b.n+1)*lengthSize)
	theirs, err := lengthAt(list, b.rank)
	if err != nil {
		return 0, err
	}
	if theirs != mine {
		return 0, &LengthError{Member: m, Theirs: theirs, Mine: mine}
	}
	return lengthAt(list, b.n)
}
