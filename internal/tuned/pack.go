package tuned

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxPacked bounds EnvTable: Linux takes variables of up to 128 KiB.
const maxPacked = 96 << 10

// Pack returns the content of a table's file for EnvTable, with the name behind it by which
// ranks know the file.
func Pack(name, file string) (string, error) {
	data, err := read(file)
	if err != nil {
		return "", err
	}
	if _, err := Decode(data); err != nil {
		return "", err
	}
	var short bytes.Buffer
	w, err := flate.NewWriter(&short, flate.BestCompression)
	if err != nil {
		return "", err
	}
	_, err = w.Write(data)
	if err = errors.Join(err, w.Close()); err != nil {
		return "", err
	}
	packed := base64.StdEncoding.EncodeToString(short.Bytes()) + " " + name
	if len(packed) > maxPacked {
		return "", fmt.Errorf("%d bytes do not fit in a variable of the ranks: %w", len(packed), ErrDamaged)
	}
	return packed, nil
}

// unpack is the inverse of Pack. It returns false if packed is not the content of the file
// at path: the user has named another file since.
func unpack(path, packed string) (data []byte, found bool, err error) {
	text, name, _ := strings.Cut(packed, " ")
	if packed == "" || name != path {
		return nil, false, nil
	}
	short, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(short)), maxBytes+1))
	}
	if err != nil {
		return nil, false, fmt.Errorf("%s of %s: %w (%w)", EnvTable, path, ErrDamaged, err)
	}
	return data, true, nil
}
