package collectives

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/bootstrap"
)

func TestInitChecksTheVariablesThatAreReadHere(t *testing.T) {
	require.Equal(t, bootstrap.EnvExplain, envExplain)
	require.Equal(t, bootstrap.EnvCollectives, envWays)
}
