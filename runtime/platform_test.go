package runtime_test

import (
	"errors"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/runtime"
)

func TestPlatformErrorNamesFeatureSystemAndRemedy(t *testing.T) {
	var err error = &runtime.PlatformError{Feature: "provider shm"}
	require.ErrorIs(t, err, errors.ErrUnsupported)
	for _, part := range []string{"provider shm needs Linux", goruntime.GOOS, goruntime.GOARCH, "runtime.RunLocal"} {
		require.ErrorContains(t, err, part)
	}
}
