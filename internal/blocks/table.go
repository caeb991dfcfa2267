package blocks

import (
	"encoding/binary"
	"errors"
)

// The payload of a request has the bytes of the blocks in front, and a table behind them.
// The table grows toward the front: its last entry is the first run. So the sender fills
// both without knowing how long either becomes.
//
//	bytes ...    run n-1  ...  run 1  run 0
const (
	entrySize = 24 // place, 8 bytes; bytes of a block, 4; blocks, 4; stride, 8
	// minSplit is the smallest front of a block that Fill puts into a request.
	minSplit = 1 << 10
)

// ErrTable says that a table is malformed.
var ErrTable = errors.New("malformed table of blocks")

// TableSize returns the bytes of a table of n runs.
func TableSize(n int) int { return n * entrySize }

// Fill takes as many runs off c as find room in buf, with their bytes, and writes the
// table to the end of buf. It returns the number of runs and that of their bytes.
// buf has minSplit bytes or more.
func Fill(buf []byte, c *Cursor) (runs, bytes int) {
	room := len(buf)
	for room > entrySize && c.More() {
		n := room - entrySize
		if c.current.Block > n && n < minSplit {
			break
		}
		r := c.Take(n)
		end := len(buf) - runs*entrySize
		encode(buf[end-entrySize:end], r)
		runs++
		bytes += r.Block * r.Count
		room -= entrySize + r.Block*r.Count
	}
	return runs, bytes
}

func encode(b []byte, r Run) {
	binary.LittleEndian.PutUint64(b, uint64(r.At))
	binary.LittleEndian.PutUint32(b[8:], uint32(r.Block))
	binary.LittleEndian.PutUint32(b[12:], uint32(r.Count))
	binary.LittleEndian.PutUint64(b[16:], uint64(r.Stride))
}

// A Table is the table of a payload.
type Table []byte

// run returns the ith run.
func (t Table) run(i int) Run {
	b := t[len(t)-(i+1)*entrySize:]
	return Run{At: int(binary.LittleEndian.Uint64(b)), Block: int(binary.LittleEndian.Uint32(b[8:])),
		Count: int(binary.LittleEndian.Uint32(b[12:])), Stride: int(binary.LittleEndian.Uint64(b[16:]))}
}

// Check returns ErrTable unless t describes the given number of bytes, all between places 0
// and the one that it returns.
func (t Table) Check(bytes int) (to int, err error) {
	if len(t) == 0 || len(t)%entrySize != 0 {
		return 0, ErrTable
	}
	for i := range len(t) / entrySize {
		r := t.run(i)
		if r.Block <= 0 || r.Count <= 0 || r.Count > bytes/r.Block || r.At < 0 || r.At > maxSpan {
			return 0, ErrTable
		}
		way, ok := product(r.Count-1, r.Stride)
		if !ok || r.At+way < 0 {
			return 0, ErrTable
		}
		bytes -= r.Count * r.Block
		to = max(to, r.At+max(0, way)+r.Block)
	}
	if bytes != 0 {
		return 0, ErrTable
	}
	return to, nil
}

// Scatter copies data to the blocks in mem. t has passed Check.
func (t Table) Scatter(mem, data []byte) {
	at := 0
	for i := range len(t) / entrySize {
		r := t.run(i)
		copyRun(mem, r, data, Run{At: at, Stride: r.Block})
		at += r.Block * r.Count
	}
}

// Gather copies the blocks in mem to data. t has passed Check.
func (t Table) Gather(data, mem []byte) {
	at := 0
	for i := range len(t) / entrySize {
		r := t.run(i)
		copyRun(data, Run{At: at, Block: r.Block, Count: r.Count, Stride: r.Block}, mem, r)
		at += r.Block * r.Count
	}
}
