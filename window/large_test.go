package window_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/window"
)

// smallMessages is a provider whose devices take few bytes in one request.
type smallMessages struct{ driver.Provider }

func (p smallMessages) Open(ctx context.Context, device string, opts driver.Options) (driver.Context, error) {
	c, err := p.Provider.Open(ctx, device, opts)
	return smallContext{c}, err
}

type smallContext struct{ driver.Context }

func (c smallContext) Info() driver.DeviceInfo {
	info := c.Context.Info()
	info.MaxMessage = 100
	return info
}

func TestTransfersBeyondOneMessageGoInPieces(t *testing.T) {
	wrap := runtime.WithWrap(func(p driver.Provider) driver.Provider { return smallMessages{p} })
	err := runtime.RunLocal(t.Context(), 2, func(ctx context.Context, job *runtime.Job) error {
		w, err := window.Allocate[byte](ctx, job.World(), 1000)
		if err != nil {
			return err
		}
		if job.World().Rank() == 0 {
			if err := exchangeLarge(ctx, w); err != nil {
				return err
			}
		}
		return w.Fence(ctx)
	}, wrap, runtime.WithFMAMax(0))
	require.NoError(t, err)
}

// exchangeLarge puts, notifies and gets more than one message holds.
func exchangeLarge(ctx context.Context, w *window.Window[byte]) error {
	src, dst := make([]byte, 999), make([]byte, 999)
	for i := range src {
		src[i] = byte(i * 7)
	}
	if err := w.Put(ctx, 1, 1, src); err != nil {
		return err
	}
	if err := w.Get(ctx, 1, 1, dst); err != nil {
		return err
	}
	if string(dst) != string(src) {
		return fmt.Errorf("a put and a get of 999 bytes differ")
	}
	clear(src)
	if err := w.PutNotify(ctx, 1, 0, src, window.Signal{Slot: 3, Add: true, Value: 1}); err != nil {
		return err
	}
	if err := w.Get(ctx, 1, 0, dst); err != nil {
		return err
	}
	if string(dst) != string(src) {
		return fmt.Errorf("a notified put and a get of 999 bytes differ")
	}
	return nil
}
