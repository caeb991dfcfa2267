package runtime

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// ParseSize reads a number of bytes such as 65536, 64K, 64KiB or 2G. All units are powers of
// 1024. Kind: local.
func ParseSize(s string) (int64, error) {
	num := strings.TrimRight(s, "kKmMgGtTiIbB")
	n, err := strconv.ParseInt(num, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is no size; write 65536, 64K, 512MiB or 2G", s)
	}
	unit := strings.ToLower(strings.TrimPrefix(s, num))
	unit = strings.TrimSuffix(strings.TrimSuffix(unit, "b"), "i")
	shift := map[string]int{"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
	by, ok := shift[unit]
	if !ok || bits.Len64(uint64(n))+by > 63 {
		return 0, fmt.Errorf("%q is no size; write 65536, 64K, 512MiB or 2G", s)
	}
	return n << by, nil
}
