package pmi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Bounds of the protocol, in bytes.
const (
	MaxKey     = 64
	MaxValue   = 1024
	MaxMessage = 8 << 10

	lengthSize = 6 // of the length of a frame
	maxFields  = 256
)

// A message is a command and its fields, in order.
type message struct {
	command string
	fields  []field
}

// A field is a key and its value in a message.
type field struct{ key, value string }

// newMessage returns a message with keys and values in turn.
func newMessage(command string, pairs ...string) message {
	m := message{command: command}
	for i := 0; i+1 < len(pairs); i += 2 {
		m.fields = append(m.fields, field{pairs[i], pairs[i+1]})
	}
	return m
}

// get returns the value of a key, or "".
func (m message) get(key string) string {
	value, _ := m.lookup(key)
	return value
}

// lookup returns the value of a key, and whether the message has it.
func (m message) lookup(key string) (value string, ok bool) {
	for _, f := range m.fields {
		if f.key == key {
			return f.value, true
		}
	}
	return "", false
}

// wrong returns the error of a message that breaks the protocol.
func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrWire, fmt.Sprintf(format, args...))
}

// line returns the message as a line of version 1.
func (m message) line() ([]byte, error) {
	return m.encode("", " ", "\n", func(value string) (string, bool) { return value, !strings.ContainsAny(value, " \n\x00") })
}

// frame returns the message as a frame of version 2.
func (m message) frame() ([]byte, error) {
	body, err := m.encode(";", ";", "", func(value string) (string, bool) {
		return strings.ReplaceAll(value, ";", ";;"), !strings.ContainsAny(value, "\x00")
	})
	if err != nil {
		return nil, err
	}
	return append(fmt.Appendf(nil, "%*d", lengthSize, len(body)), body...), nil
}

// encode writes the fields. It writes first behind the command, between before each other field,
// and last at the end. The function escape returns a value as it is written, unless it cannot be.
func (m message) encode(after, between, last string, escape func(string) (string, bool)) ([]byte, error) {
	if strings.ContainsAny(m.command, " ;\n\x00") {
		return nil, wrong("command %.40q", m.command)
	}
	b := append([]byte("cmd="), m.command...)
	for _, f := range m.fields {
		value, ok := escape(f.value)
		if !ok || f.key == "" || strings.ContainsAny(f.key, "= ;\n\x00") {
			return nil, wrong("%s cannot carry %q=%q", m.command, f.key, f.value)
		}
		b = append(append(append(append(b, between...), f.key...), '='), value...)
	}
	b = append(append(b, after...), last...)
	if len(b) > MaxMessage {
		return nil, wrong("%d bytes where %d are allowed", len(b), MaxMessage)
	}
	return b, nil
}

// readLine reads a message of version 1. Its first field may be mcmd, which begins a request
// of several lines.
func readLine(r *bufio.Reader) (message, error) {
	text, err := rawLine(r)
	if err != nil {
		return message{}, err
	}
	return parse(strings.Split(strings.TrimRight(text, " "), " "))
}

// rawLine reads a line without its end.
func rawLine(r *bufio.Reader) (string, error) {
	text, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return "", wrong("a line above %d bytes", MaxMessage)
	case errors.Is(err, io.EOF) && len(text) > 0:
		return "", io.ErrUnexpectedEOF
	case err != nil:
		return "", err
	}
	return string(text[:len(text)-1]), nil
}

// readFrame reads a message of version 2.
func readFrame(r *bufio.Reader) (message, error) {
	var length [lengthSize]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return message{}, err
	}
	n, err := strconv.ParseUint(strings.Trim(string(length[:]), " "), 10, 32)
	if err != nil || n > MaxMessage {
		return message{}, wrong("length %q", length[:])
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return message{}, err
	}
	return parse(semicolons(string(body)))
}

// semicolons splits the body of a frame. Two semicolons are one of a value.
func semicolons(body string) (fields []string) {
	var f strings.Builder
	for i := 0; i < len(body); i++ {
		switch {
		case body[i] != ';':
			f.WriteByte(body[i])
		case i+1 < len(body) && body[i+1] == ';':
			f.WriteByte(';')
			i++
		default:
			fields = append(fields, f.String())
			f.Reset()
		}
	}
	if f.Len() > 0 {
		fields = append(fields, f.String())
	}
	return fields
}

// parse reads fields of the form key=value. The first one is the command.
func parse(fields []string) (m message, err error) {
	if len(fields) > maxFields {
		return m, wrong("%d fields", len(fields))
	}
	for i, text := range fields {
		key, value, ok := strings.Cut(text, "=")
		switch {
		case i == 0 && (!ok || value == "" || key != "cmd" && key != "mcmd"):
			return m, wrong("no command in %.40q", text)
		case i == 0:
			m.command = value
		case text == "":
		case !ok || key == "":
			return m, wrong("field %.40q of %s", text, m.command)
		default:
			m.fields = append(m.fields, field{key, value})
		}
	}
	if m.command == "" {
		return m, wrong("no command")
	}
	return m, nil
}

// checkPair reports a key or a value that no process manager takes.
func checkPair(key, value string) error {
	switch {
	case key == "" || len(key) > MaxKey || strings.ContainsAny(key, "= ;\n\x00"):
		return wrong("key %.80q: want 1 to %d bytes without blanks, = and ;", key, MaxKey)
	case len(value) > MaxValue || strings.ContainsAny(value, " ;\n\x00"):
		return wrong("value of %s: want at most %d bytes without blanks and ;", key, MaxValue)
	}
	return nil
}
