package bootstrap

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// LastWords are the error that ends a rank's program. The rank hands them to its
// launcher through a pipe, each in one write, since they may come before it has
// joined and after it has left.
type LastWords struct {
	Rank int    `json:"rank"`
	Text string `json:"text"`
}

// MaxLastWords bounds them as sent: it is what the kernel writes to a pipe in one piece (PIPE_BUF).
const MaxLastWords = 4096

// SayLast has the launcher print the error that ends this program, or returns
// false: the program was not started as a rank, its launcher takes none, or they
// are too long.
func SayLast(text string) bool {
	rank, err := strconv.Atoi(os.Getenv(EnvRank))
	return err == nil && LastWords{rank, text}.send(os.Getenv(EnvLastWords)) == nil
}

func (w LastWords) send(path string) error {
	line, err := json.Marshal(w)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if len(line) > MaxLastWords {
		return errors.New("too long for one write")
	}
	// The number in the path may be another process's by now.
	if info, err := os.Stat(path); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return errors.New("no pipe")
	}
	pipe, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = pipe.Write(line)
	return errors.Join(err, pipe.Close())
}

// ParseLastWords reads what one of size ranks has handed over.
func ParseLastWords(line []byte, size int) (w LastWords, err error) {
	if err := json.Unmarshal(line, &w); err != nil {
		return LastWords{}, err
	}
	if w.Rank < 0 || w.Rank >= size {
		return LastWords{}, fmt.Errorf("rank %d of %d", w.Rank, size)
	}
	return w, nil
}
