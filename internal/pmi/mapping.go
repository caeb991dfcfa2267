package pmi

import (
	"fmt"
	"slices"
	"strings"
)

// A block of a mapping places ranks on nodes from first on, each the same number of ranks.
type block struct{ first, nodes, ranks int }

// maxMapped bounds the ranks of a mapping.
const maxMapped = 1 << 20

// Mapping returns the attribute PMI_process_mapping for the node of each rank, such as
// (vector,(0,2,4)). Nodes are numbered from 0. It returns "" where that is longer than
// MaxValue: then ranks find out by themselves.
func Mapping(nodes []int) string {
	var blocks []block
	for i := 0; i < len(nodes); {
		end := i
		for end < len(nodes) && nodes[end] == nodes[i] {
			end++
		}
		last := len(blocks) - 1
		if last >= 0 && blocks[last].ranks == end-i && nodes[i] == blocks[last].first+blocks[last].nodes {
			blocks[last].nodes++
		} else {
			blocks = append(blocks, block{nodes[i], 1, end - i})
		}
		i = end
	}
	blocks = blocks[:period(blocks)]
	var text strings.Builder
	text.WriteString("(vector")
	for _, b := range blocks {
		fmt.Fprintf(&text, ",(%d,%d,%d)", b.first, b.nodes, b.ranks)
	}
	text.WriteByte(')')
	if text.Len() > MaxValue {
		return ""
	}
	return text.String()
}

// period returns the number of blocks after which they repeat. A reader repeats a vector
// that is too short for the job.
func period(blocks []block) int {
	for p := 1; p < len(blocks); p++ {
		if len(blocks)%p == 0 && slices.Equal(blocks[p:], blocks[:len(blocks)-p]) {
			return p
		}
	}
	return len(blocks)
}

// parseMapping returns the node of each of size ranks.
func parseMapping(text string, size int) (nodes []int, err error) {
	if size < 1 || size > maxMapped {
		return nil, wrong("a mapping of %d ranks", size)
	}
	rest, ok := strings.CutPrefix(text, "(vector")
	rest, closed := strings.CutSuffix(rest, ")")
	if !ok || !closed || rest == "" {
		return nil, wrong("mapping %.40q", text)
	}
	var blocks []block
	for _, part := range strings.SplitAfter(rest, ")") {
		if part == "" {
			continue
		}
		var b block
		var end rune
		if n, err := fmt.Sscanf(part, ",(%d,%d,%d%c", &b.first, &b.nodes, &b.ranks, &end); n != 4 || err != nil || end != ')' ||
			b.first < 0 || b.first > maxMapped || b.nodes < 1 || b.nodes > maxMapped || b.ranks < 1 || b.ranks > maxMapped {
			return nil, wrong("block %.40q of a mapping", part)
		}
		blocks = append(blocks, b)
	}
	for {
		for _, b := range blocks {
			for i := range b.nodes * b.ranks {
				if len(nodes) == size {
					return nodes, nil
				}
				nodes = append(nodes, b.first+i/b.ranks)
			}
		}
	}
}
