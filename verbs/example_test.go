package verbs_test

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/loop"
)

// endpoint holds a rank's objects for a connection to one peer.
type endpoint struct {
	cq *verbs.CQ
	qp *verbs.QP
	mr *verbs.MR
}

func open(ctx context.Context, p driver.Provider) (e endpoint, err error) {
	dev, err := verbs.Open(ctx, p, "", verbs.Options{})
	if err != nil {
		return e, err
	}
	pd, err := dev.AllocPD()
	if err != nil {
		return e, err
	}
	if e.cq, err = dev.CreateCQ(ctx, 16); err != nil {
		return e, err
	}
	if e.qp, err = pd.CreateQP(ctx, verbs.QPConfig{SendCQ: e.cq, RecvCQ: e.cq, SendDepth: 8}); err != nil {
		return e, err
	}
	e.mr, err = pd.RegMR(ctx, verbs.Memory{Bytes: make([]byte, 64)}, verbs.AllAccess)
	return e, err
}

// One rank writes into the memory of another, which takes no part.
func Example() {
	ctx, wire := context.Background(), loop.New()
	a, err := open(ctx, wire)
	must(err)
	b, err := open(ctx, wire)
	must(err)
	must(a.qp.Connect(ctx, b.qp.Address(), 0)) // the addresses and b.mr.Remote(0)
	must(b.qp.Connect(ctx, a.qp.Address(), 0)) // travel by any other way

	copy(a.mr.Bytes(), "hello")
	source, err := a.mr.Segment(0, 5)
	must(err)
	_, err = a.qp.PostSend([]verbs.WorkRequest{{
		ID: 1, Op: verbs.OpWrite, Flags: verbs.Signaled,
		Local: []verbs.Segment{source}, Remote: b.mr.Remote(8),
	}})
	must(err)
	var wc [1]verbs.Completion
	for n := 0; n == 0; n, err = a.cq.Poll(wc[:]) {
		must(a.cq.Wait(ctx))
	}
	must(err)
	fmt.Println(wc[0].Op, wc[0].Status, string(b.mr.Bytes()[8:13]))
	// Output: WRITE success hello
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
