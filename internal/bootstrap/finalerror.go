package bootstrap

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// A FinalError is the error that ends a rank's program. The rank sends it to its launcher
// through a pipe, in one write. It needs no connection, since a program may end before it
// has joined and after it has left.
type FinalError struct {
	Rank int    `json:"rank"`
	Text string `json:"text"`
}

// MaxFinalError bounds a FinalError as sent. The kernel writes that many bytes to a pipe
// in one piece (PIPE_BUF).
const MaxFinalError = 4096

// SendFinalError has the launcher print the error that ends this program. It returns
// false if the launcher cannot: it did not start this program as a rank, takes no errors,
// or the text is too long.
func SendFinalError(text string) bool {
	rank, err := strconv.Atoi(os.Getenv(EnvRank))
	return err == nil && FinalError{rank, text}.send(os.Getenv(EnvErrorPipe)) == nil
}

// send writes the error to the agent's pipe in one write, so that lines of ranks do not mix.
func (e FinalError) send(path string) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if len(line) > MaxFinalError {
		return errors.New("too long for one write")
	}
	// The process number in the path may belong to another process by now.
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

// ParseFinalError reads a line that one of size ranks has sent.
func ParseFinalError(line []byte, size int) (e FinalError, err error) {
	if err := json.Unmarshal(line, &e); err != nil {
		return FinalError{}, err
	}
	if e.Rank < 0 || e.Rank >= size {
		return FinalError{}, fmt.Errorf("rank %d of %d", e.Rank, size)
	}
	return e, nil
}
