package message_test

import (
	"testing"

	"github.com/gopgas/gopgas/internal/testwatch"
)

func TestMain(m *testing.M) { testwatch.Main(m) }
