package rpipe_test

import (
	"maps"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
)

func TestMain(m *testing.M) {
	bodies := bodiesOfDeath()
	maps.Copy(bodies, bodiesOverWindows())
	maps.Copy(bodies, bodiesOfAggregates())
	bodies["beside the stopped"], bodies["beside the stopped, not connected"] = besideTheStopped(true), besideTheStopped(false)
	testjob.Main(m, bodies)
}
