//go:build linux

package hosts

import (
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// Bounds of a list. One more is a typing error.
const (
	maxHosts = 1 << 16
	maxSlots = 1 << 20
)

// ReadList reads the value of -H: host, host:slots, user@host, [IPv6]:slots and
// prefix[1-3,5]suffix, apart by commas. A host without slots has one.
func ReadList(text string) (list []Host, err error) {
	for _, item := range splitOutside(text, ',') {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		hosts, err := readItem(item)
		if err != nil {
			return nil, err
		}
		if list = append(list, hosts...); len(list) > maxHosts {
			return nil, fmt.Errorf("more than %d hosts", maxHosts)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("host list %q names no host", text)
	}
	return Merge(list), nil
}

// ReadFile reads a hostfile.
func ReadFile(name string) ([]Host, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("hostfile: %w", err)
	}
	return Parse(name, string(text))
}

// Parse reads the text of a hostfile. A line has hosts as ReadList takes them, and then
// words such as slots=4. name is that of the file, for errors.
func Parse(name, text string) (list []Host, err error) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		hosts, err := readLine(line)
		if err == nil && len(list)+len(hosts) > maxHosts {
			err = fmt.Errorf("more than %d hosts", maxHosts)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, number, err)
		}
		list = append(list, hosts...)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: names no host", name)
	}
	return Merge(list), nil
}

// readLine reads a line of a hostfile.
func readLine(line string) ([]Host, error) {
	line, _, _ = strings.Cut(line, "#")
	// "slots = 4" is a word too.
	words := strings.Fields(regexp.MustCompile(`\s*=\s*`).ReplaceAllString(line, "="))
	if len(words) == 0 {
		return nil, nil
	}
	list, err := ReadList(words[0])
	if err != nil {
		return nil, err
	}
	for _, word := range words[1:] {
		for i := range list {
			if err := list[i].set(word); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// set reads a word behind a host.
func (h *Host) set(word string) (err error) {
	name, value, ok := strings.Cut(word, "=")
	switch strings.ReplaceAll(name, "-", "_") {
	case "slots", "cpu", "count":
		h.Slots, err = slots(value)
	case "max_slots", "max":
		h.Max, err = slots(value)
	case "user", "user_name", "username":
		h.User, err = value, checkUser(value)
	default:
		ok = false
	}
	if !ok {
		return fmt.Errorf("%q behind host %s; write slots=N, max_slots=N or user=NAME", word, h.Name)
	}
	if err == nil && h.Max > 0 && h.Max < h.Slots {
		err = fmt.Errorf("host %s: max_slots=%d is less than its %d slots", h.Name, h.Max, h.Slots)
	}
	return err
}

// slots reads a host's number of slots.
func slots(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxSlots {
		return 0, fmt.Errorf("%q slots: want a number from 1 to %d", text, maxSlots)
	}
	return n, nil
}

// readItem reads host, host:slots and the like.
func readItem(item string) ([]Host, error) {
	h := Host{Slots: 1}
	rest := item
	if user, host, ok := strings.Cut(item, "@"); ok {
		if err := checkUser(user); err != nil {
			return nil, fmt.Errorf("%q: %w", item, err)
		}
		h.User, rest = user, host
	}
	names, rest, err := readNames(rest)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", item, err)
	}
	if rest != "" {
		number, ok := strings.CutPrefix(rest, ":")
		if !ok {
			return nil, fmt.Errorf("%q: want host or host:slots", item)
		}
		if h.Slots, err = slots(number); err != nil {
			return nil, fmt.Errorf("%q: %w", item, err)
		}
	}
	list := make([]Host, 0, len(names))
	for _, name := range names {
		if err := checkName(name); err != nil {
			return nil, fmt.Errorf("%q: %w", item, err)
		}
		h.Name = name
		list = append(list, h)
	}
	return list, nil
}

// readNames cuts the names off the front of an item: an IPv6 address, with brackets or
// without, or a name with ranges.
func readNames(item string) (names []string, rest string, err error) {
	if address, rest, ok := strings.Cut(strings.TrimPrefix(item, "["), "]"); ok && item[0] == '[' && strings.Contains(address, ":") {
		if !isIPv6(address) {
			return nil, "", fmt.Errorf("%q is no IPv6 address", address)
		}
		return []string{address}, rest, nil
	}
	if isIPv6(item) {
		return []string{item}, "", nil
	}
	if at := strings.IndexByte(item, ':'); at >= 0 {
		item, rest = item[:at], item[at:]
	}
	names, err = expand(item)
	return names, rest, err
}

// isIPv6 reports whether text is an address such as fe80::1 or fe80::1%eth0.
func isIPv6(text string) bool {
	address, _, _ := strings.Cut(text, "%")
	return strings.Contains(address, ":") && net.ParseIP(address) != nil
}

// expand expands the ranges in Slurm's names: eco[1-2,07] is eco1, eco2, eco07.
func expand(name string) ([]string, error) {
	prefix, rest, ok := strings.Cut(name, "[")
	if !ok {
		return []string{name}, nil
	}
	ranges, suffix, ok := strings.Cut(rest, "]")
	if !ok {
		return nil, fmt.Errorf("a [ without its ]")
	}
	tails, err := expand(suffix)
	if err != nil {
		return nil, err
	}
	var names []string
	for part := range strings.SplitSeq(ranges, ",") {
		numbers, err := numbersOf(part)
		if err != nil {
			return nil, err
		}
		if len(names)+len(numbers)*len(tails) > maxHosts {
			return nil, fmt.Errorf("more than %d hosts", maxHosts)
		}
		for _, number := range numbers {
			for _, tail := range tails {
				names = append(names, prefix+number+tail)
			}
		}
	}
	return names, nil
}

// numbersOf expands 1-3 and 07. Leading zeros give the width.
func numbersOf(part string) ([]string, error) {
	first, last, isRange := strings.Cut(part, "-")
	if !isRange {
		last = first
	}
	from, err1 := strconv.ParseUint(first, 10, 32)
	to, err2 := strconv.ParseUint(last, 10, 32)
	if err1 != nil || err2 != nil || to < from || to-from >= maxHosts || len(first) > 10 {
		return nil, fmt.Errorf("range %q; write 1-3 or 7", part)
	}
	var numbers []string
	for n := from; n <= to; n++ {
		numbers = append(numbers, fmt.Sprintf("%0*d", len(first), n))
	}
	return numbers, nil
}

// checkName refuses names that are none.
func checkName(name string) error {
	if name == "" {
		return fmt.Errorf("no name")
	}
	if !isPlain(name, `\/=@,`) {
		return fmt.Errorf("%q is no name of a host", name)
	}
	return nil
}

// checkUser refuses names that are none. ssh puts the user into commands of its configuration.
func checkUser(user string) error {
	if !isPlain(user, "/=,") {
		return fmt.Errorf("user %q is no name of a user", user)
	}
	return nil
}

// isPlain reports whether ssh takes text for no option, and a shell takes it for one word,
// without any of the other characters.
func isPlain(text, others string) bool {
	unfit := func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune("\"'`$;&|<>()[]{}*?!"+others, r)
	}
	return text != "" && text[0] != '-' && !strings.ContainsFunc(text, unfit)
}

// splitOutside splits text at separators outside brackets.
func splitOutside(text string, separator byte) (items []string) {
	depth, begin := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '[':
			depth++
		case ']':
			depth--
		case separator:
			if depth <= 0 {
				items, begin = append(items, text[begin:i]), i+1
			}
		}
	}
	return append(items, text[begin:])
}
