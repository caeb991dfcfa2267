package pipe

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEndFitsSizeClass(t *testing.T) {
	require.LessOrEqual(t, reflect.TypeFor[End]().Size(), uintptr(704))
}
