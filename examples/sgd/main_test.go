package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

// jobs are the sizes that every test runs at.
var jobs = []int{1, 2, 3, 4, 8}

func local(n int, body runtime.Body, opts ...runtime.Option) error {
	return testjob.RunLocal(context.Background(), n, body, opts...)
}

func small(out io.Writer) options {
	return options{steps: 30, batch: 16, hidden: 6, rate: 0.1, seed: 1, check: true, out: out, log: io.Discard}
}

func TestResultEqualsThatOfOneRankAlone(t *testing.T) {
	for name, opts := range map[string][]runtime.Option{
		"mapped": {runtime.WithProvider("loop")},
		"queued": {runtime.WithProvider("loop"), runtime.WithFMAMax(0)},
		"tcp":    {runtime.WithProvider("tcp")},
	} {
		for _, n := range jobs {
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) {
				var out strings.Builder // rank 0 alone prints
				o := small(&out)
				require.NoError(t, local(n, o.run, opts...))
				require.Contains(t, out.String(), fmt.Sprintf("81 parameters, 30 steps with 16 samples each, %d ranks", n))
				require.Contains(t, out.String(), fmt.Sprintf("checked: %d ranks have the bits of", n))
			})
		}
	}
}

func TestMoreRanksThanSamples(t *testing.T) {
	o := small(io.Discard)
	o.batch = 3
	require.NoError(t, local(8, o.run))
}

func TestTrainedNetworkReachesItsAccuracy(t *testing.T) {
	var out strings.Builder
	o := options{steps: 400, batch: 48, hidden: 16, rate: 0.2, accuracy: 0.9, seed: 1, check: true, out: &out, log: io.Discard}
	require.NoError(t, local(4, o.run))
	o.steps, o.check = 1, false
	require.NoError(t, local(4, o.run))
	o.check = true
	require.ErrorContains(t, local(4, o.run), "try more steps")
}

// TestSharesChangeRoundingOnly measures the drift that the check bounds.
func TestSharesChangeRoundingOnly(t *testing.T) {
	o := options{batch: 96, hidden: 24, rate: 0.2, seed: 1}
	whole, err := o.alone(t.Context(), 1, early)
	require.NoError(t, err)
	shared, err := o.alone(t.Context(), 8, early)
	require.NoError(t, err)
	most := 0.0
	for i, v := range whole.net.params {
		most = max(most, math.Abs(v-shared.net.params[i]))
	}
	t.Logf("a parameter differs by up to %g", most)
	require.NotZero(t, most)
	require.Less(t, most, drift/100)
}

func TestCheckFindsAWrongLoss(t *testing.T) {
	o := small(io.Discard)
	tr, err := o.alone(t.Context(), 3, o.steps)
	require.NoError(t, err)
	require.NoError(t, o.compareLosses(t.Context(), tr))
	tr.losses[early-1] *= 1 + 2*drift
	require.ErrorContains(t, o.compareLosses(t.Context(), tr), fmt.Sprintf("the loss of step %d is", early-1))
	tr.losses[0] = math.NaN()
	require.ErrorContains(t, o.compareLosses(t.Context(), tr), "the loss of step 0 is NaN")
}

func TestCheckFindsAWrongBit(t *testing.T) {
	for _, n := range jobs {
		o := small(io.Discard)
		err := local(n, func(ctx context.Context, job *runtime.Job) error {
			net := newNetwork(o.hidden)
			net.draw(o.seed)
			tr := o.newTrainer(net, make([]float64, len(net.params)+1)) // not in the heap: slower, and right
			if err := tr.train(ctx, job.World()); err != nil {
				return err
			}
			if job.World().Rank() == n-1 {
				net.params[40] = math.Nextafter(net.params[40], 0)
			}
			return o.compare(ctx, job.World(), tr, tests)
		})
		require.ErrorContains(t, err, fmt.Sprintf("parameter 40 at rank %d is", n-1))
	}
}

func TestSharesCoverTheBatch(t *testing.T) {
	for _, n := range jobs {
		for _, batch := range []int{0, 1, 7, 96} {
			end := 0
			for rank := range n {
				from, to := share(batch, rank, n)
				require.Equal(t, end, from)
				require.LessOrEqual(t, to-from, batch/n+1)
				end = to
			}
			require.Equal(t, batch, end)
		}
	}
}

func TestPictureShowsTheLossAndTheRegions(t *testing.T) {
	o := small(io.Discard)
	o.svg = filepath.Join(t.TempDir(), "loss.svg")
	require.NoError(t, local(2, o.run))
	svg, err := os.ReadFile(o.svg)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(svg), "<polyline"))
	require.Equal(t, 80*80+600, strings.Count(string(svg), "<circle"))
	require.NotContains(t, string(svg), "NaN")
	o.svg = filepath.Join(t.TempDir(), "there is no folder", "loss.svg")
	require.ErrorIs(t, local(2, o.run), os.ErrNotExist)
}
