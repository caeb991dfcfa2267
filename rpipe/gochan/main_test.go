package gochan_test

import (
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
)

func TestMain(m *testing.M) { testjob.Main(m, nil) }
