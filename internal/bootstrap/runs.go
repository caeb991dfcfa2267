package bootstrap

import (
	"encoding/binary"
	"math"
	"slices"
)

// Members of a team are mostly consecutive ranks, and most ranks of a job bring the same
// card. So a message carries both as runs, and a job of 4,096 ranks on a few hosts takes a
// few hundred bytes a rank:
//
//	members  4     runs; each: first u32, ranks u32
//	parts    4     different parts; each: 4+n
//	         4     runs; each: number of the part u32, parts u32
//
// The encoding of a list is unique: a decoder refuses any other.

// maxItems bounds the members or parts of one message, which runs could multiply.
const maxItems = 1 << 20

// runsOf returns the number of runs of consecutive ranks.
func runsOf(members []int) (n int) {
	for i := range members {
		if startsRun(members, i) {
			n++
		}
	}
	return n
}

func startsRun(members []int, i int) bool {
	return i == 0 || members[i] != members[i-1]+1
}

// appendMembers encodes a list of ranks as runs of consecutive ones: a team of all ranks takes 12
// bytes.
func appendMembers(b []byte, members []int) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(runsOf(members)))
	for i := 0; i < len(members); {
		end := i + 1
		for end < len(members) && !startsRun(members, end) {
			end++
		}
		b = le.AppendUint32(b, uint32(members[i]))
		b = le.AppendUint32(b, uint32(end-i))
		i = end
	}
	return b
}

// members reads runs of ranks.
func (c *cursor) members() (members []int) {
	runs := c.count(8)
	for range runs {
		first, n := int(int32(c.u32())), int(c.u32())
		if n == 0 || n > maxItems-len(members) || first+n-1 > math.MaxInt32 {
			c.short = true
			return nil
		}
		members = slices.Grow(members, n)
		for i := range n {
			members = append(members, first+i)
		}
	}
	if runsOf(members) != runs {
		c.short = true
	}
	return members
}

// A partList holds the parts of a message as it travels: each different part once, and
// runs of their numbers.
type partList struct {
	parts [][]byte
	runs  []partRun
	bytes int // of the encoding
}

// A partRun says that count members in a row gave the same part.
type partRun struct{ number, count uint32 }

// listOf gathers the parts of members. Each distinct part is kept once, since members often give
// the same bytes.
func listOf(parts [][]byte) (l partList) {
	numbers := make(map[string]uint32, 1)
	for _, p := range parts {
		number, known := numbers[string(p)]
		if !known {
			number = uint32(len(l.parts))
			numbers[string(p)] = number
			l.parts = append(l.parts, p)
			l.bytes += 4 + len(p)
		}
		if last := len(l.runs) - 1; last >= 0 && l.runs[last].number == number {
			l.runs[last].count++
		} else {
			l.runs = append(l.runs, partRun{number, 1})
		}
	}
	l.bytes += 4 + 4 + 8*len(l.runs)
	return l
}

// append encodes the list: the distinct parts, then the runs of members that gave them.
func (l *partList) append(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(len(l.parts)))
	for _, p := range l.parts {
		b = le.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
	}
	b = le.AppendUint32(b, uint32(len(l.runs)))
	for _, r := range l.runs {
		b = le.AppendUint32(b, r.number)
		b = le.AppendUint32(b, r.count)
	}
	return b
}

// parts reads a list of parts. Equal parts are one slice.
func (c *cursor) parts() (parts [][]byte) {
	different := make([][]byte, c.count(4))
	seen := make(map[string]bool, len(different))
	for i := range different {
		different[i] = c.bytes(int(c.u32()))
		if seen[string(different[i])] {
			c.short = true
		}
		seen[string(different[i])] = true
	}
	runs, total := c.partRuns(len(different))
	if total == 0 {
		return nil
	}
	parts = make([][]byte, 0, total)
	for _, r := range runs {
		for range r.count {
			parts = append(parts, different[r.number])
		}
	}
	return parts
}

// partRuns reads the runs of a list with that many different parts, and counts its parts.
func (c *cursor) partRuns(different int) (runs []partRun, total int) {
	runs = make([]partRun, c.count(8))
	used := 0
	for i := range runs {
		r := partRun{c.u32(), c.u32()}
		if int(r.number) > used || int(r.number) >= different || i > 0 && r.number == runs[i-1].number ||
			r.count == 0 || r.count > uint32(maxItems-total) {
			c.short = true
			return nil, 0
		}
		used = max(used, int(r.number)+1)
		total += int(r.count)
		runs[i] = r
	}
	if used != different {
		c.short = true
	}
	return runs, total
}
