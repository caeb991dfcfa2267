//go:build linux

package fabric_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
	"github.com/gopgas/gopgas/verbs/loop"
	"github.com/gopgas/gopgas/verbs/tcp"
)

// kinds holds the devices that the plan of a put tells apart.
var kinds = map[string]struct {
	fmaMax int // -1 maps memory, 0 does not
	open   func() driver.Provider
	change func(*driver.DeviceInfo)
}{
	"mapped": {fmaMax: -1, open: onLoop(faulty.Plan{})},
	"inline": {open: onLoop(faulty.Plan{HideMapper: true})}, // 1 KiB
	"whole":  {open: onLoop(faulty.Plan{HideMapper: true}), change: func(i *driver.DeviceInfo) { i.Writes.Whole = true }},
	"lazy":   {open: func() driver.Provider { return tcp.New(tcp.Config{}) }}, // 1 MiB inline
	"staged": {open: onLoop(faulty.Plan{HideMapper: true, NeedLocalKeys: true, MaxInline: 64, HideExtendedAtomics: true})},
	"by CPU": {open: onLoop(byCPU)}, // the target's CPU applies atomics
	"silent": {open: onLoop(faulty.Plan{HideMapper: true}), change: func(i *driver.DeviceInfo) { i.Writes.Silent = true }},
	"small":  {open: onLoop(faulty.Plan{HideMapper: true}), change: func(i *driver.DeviceInfo) { i.MaxMessage = 40_000 }},
}

// onLoop opens a provider whose ranks are in one process.
func onLoop(plan faulty.Plan) func() driver.Provider {
	return func() driver.Provider { return faulty.New(loop.New(), plan) }
}

// The parts of a put, and the flag, lie at these offsets of the target's memory.
const (
	planFlag = 8
	planData = 64
	planSize = planData + 100_000
)

var (
	set = fabric.Flag{Offset: planFlag, Value: 5}
	add = fabric.Flag{Offset: planFlag, Value: 5, Add: true}
)

// part returns n bytes that go to the beginning of the target's data.
func part(n int) fabric.Part { return behind(0, n) }

// behind returns n bytes that go to an offset of it.
func behind(offset, n int) fabric.Part {
	return fabric.Part{At: planData + offset, Mem: make([]byte, n)}
}

// by returns p on a path.
func by(path fabric.Path, p fabric.Part) fabric.Part {
	p.Path = path
	return p
}

// plans lists the requests that Start posts for a put on each kind of device. A symbol names
// the operation of a request. The number of bytes and a symbol for each flag follow. A bar
// parts calls of PostSend:
//
//	W  WRITE                 s  signaled
//	I  WRITE_WITH_IMM        i  inline
//	A  ATOMIC                w  wakes the target
//	F  FETCH_ADD             a  announced
//	Q  SEND of a request
//
// A device without an entry posts the requests of "inline". Start posts nothing to mapped memory, but for a part on
// the path Bulk.
var plans = []struct {
	name  string
	put   fabric.Put
	stays bool // in a region
	posts map[string]string
}{
	{"a flag", fabric.Put{Tell: fabric.TellByFlag, Flag: set}, false,
		map[string]string{"inline": "W8i", "silent": "I8iw"}},
	{"an addition", fabric.Put{Tell: fabric.TellByFlag, Flag: add}, false,
		map[string]string{"inline": "A0", "staged": "F8s", "by CPU": "Q64siw", "silent": "A0 I0w"}},
	{"100 bytes", fabric.Put{Body: part(100)}, false,
		map[string]string{"inline": "W100i", "staged": "W100s"}},
	{"the last byte of a striped put", fabric.Put{Body: by(fabric.Bulk, part(1)), Lent: true}, false,
		map[string]string{"inline": "W1s", "mapped": "W1s"}},
	{"2000 bytes", fabric.Put{Body: part(2000)}, false,
		map[string]string{"inline": "W2000s", "lazy": "W2000i"}},
	{"100,000 bytes", fabric.Put{Body: part(100_000)}, false,
		map[string]string{"inline": "W100000s", "small": "W40000s | W40000s | W20000s"}},
	{"100,000 bytes, lent", fabric.Put{Body: part(100_000), Lent: true}, false,
		map[string]string{"inline": "W100000s", "small": "W40000s | W40000s | W20000s"}},
	{"100 bytes and a flag", fabric.Put{Body: part(100), Tell: fabric.TellByFlag, Flag: set}, false,
		map[string]string{"inline": "W100i W8i", "staged": "W100sa W8i", "silent": "W100i I8iw"}},
	{"100,000 bytes and a flag", fabric.Put{Body: part(100_000), Tell: fabric.TellByFlag, Flag: set}, false,
		map[string]string{"inline": "W100000sa W8i", "silent": "W100000sa I8iw", "small": "W40000s | W40000s | W20000sa W8i"}},
	{"2000 bytes and an addition", fabric.Put{Body: part(2000), Tell: fabric.TellByFlag, Flag: add}, false,
		map[string]string{"inline": "W2000sa A0", "lazy": "W2000i A0", "staged": "W2000sa | F8s", "by CPU": "W2000sa | Q64siw", "silent": "W2000sa A0 I0w"}},
	{"two parts, inline where it may be, and a flag", fabric.Put{Head: by(fabric.Inline, part(100)), Body: by(fabric.Inline, behind(100, 2000)), Tell: fabric.TellByFlag, Flag: set}, false,
		map[string]string{"inline": "W100i W2000sa W8i", "lazy": "W100i W2000i W8i", "staged": "W100sa | W2000sa W8i", "silent": "W100i W2000sa I8iw"}},
	{"a lent part, an inline one and a flag", fabric.Put{Head: by(fabric.Bulk, part(30_000)), Body: by(fabric.Inline, behind(30_000, 500)), Tell: fabric.TellByFlag, Flag: set, Lent: true}, false,
		map[string]string{"inline": "W30000sa W500i W8i", "staged": "W30000sa | W500sa W8i", "silent": "W30000sa W500i I8iw"}},
	{"2000 bytes of a region and a flag", fabric.Put{Body: part(2000), Tell: fabric.TellByFlag, Flag: set}, true,
		map[string]string{"inline": "W2000s W8i", "lazy": "W2000i W8i", "silent": "W2000s I8iw"}},
	{"100,000 bytes of a region and a flag", fabric.Put{Body: part(100_000), Tell: fabric.TellByFlag, Flag: set}, true,
		map[string]string{"inline": "W100000s W8i", "silent": "W100000s I8iw", "small": "W40000s | W40000s | W20000s W8i"}},
	{"128 bytes whose last word tells", fabric.Put{Body: part(128), Tell: fabric.TellByLastWord}, false,
		map[string]string{"inline": "W120i W8i", "whole": "W128i", "lazy": "W128i", "staged": "W120sa W8i", "silent": "W120i I8iw"}},
	{"2000 bytes, then 128 whose last word tells", fabric.Put{Head: by(fabric.Inline, part(2000)), Body: behind(2000, 128), Tell: fabric.TellByLastWord}, false,
		map[string]string{"inline": "W2000sa W120i W8i", "whole": "W2000sa W128i", "lazy": "W2000i W128i", "staged": "W2000sa | W120sa W8i", "silent": "W2000sa W120i I8iw"}},
}

func TestStartPostsThePlannedRequestsOfAPut(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			wire := kind.open()
			recorded := &recorder{Provider: wire, change: kind.change}
			providers := []driver.Provider{recorded, &recorder{Provider: wire, change: kind.change}}
			if name == "lazy" { // each rank has a provider of its own
				providers[1] = kind.open()
			}
			r := newRigOver(t, 2, kind.fmaMax, func() (p driver.Provider) {
				p, providers = providers[0], providers[1:]
				return p
			})
			mem, source := r.region(t, 1, planSize, "x"), r.source(t, planSize)
			remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
			require.NoError(t, err)
			for _, p := range plans {
				want, named := p.posts[name]
				if !named && name != "mapped" {
					want = p.posts["inline"]
				}
				put := p.put
				if p.stays {
					put.Region, put.Body.Mem = source, source.Bytes()[:len(put.Body.Mem)]
				}
				posted(t, remote, recorded, put, mem, p.name, want)
			}
		})
	}
}

// posted starts a put, compares the requests, and checks the bytes that arrived.
func posted(t *testing.T, remote *fabric.Remote, recorded *recorder, put fabric.Put, mem []byte, name, want string) {
	clear(mem)
	for _, part := range []fabric.Part{put.Head, put.Body} {
		for i := range part.Mem {
			part.Mem[i] = byte(part.At + i + 1)
		}
	}
	recorded.take()
	req, err := remote.Start(watched(t), &put)
	require.NoError(t, err, name)
	require.Equal(t, want, recorded.take(), name)
	require.NoError(t, req.Wait(watched(t)), name)
	require.NoError(t, remote.Peer.Flush(watched(t)), name)
	for _, part := range []fabric.Part{put.Head, put.Body} {
		require.True(t, bytes.Equal(part.Mem, mem[part.At:][:len(part.Mem)]), name)
	}
	if put.Tell == fabric.TellByFlag {
		require.EqualValues(t, 5, binary.NativeEndian.Uint64(mem[planFlag:]), name)
	}
}

func TestPutAllocatesNothing(t *testing.T) {
	for name, fmaMax := range map[string]int{"mapped": -1, "queued": 0} {
		wire := loop.New()
		r := newRigOver(t, 2, fmaMax, func() driver.Provider { return wire })
		r.region(t, 1, planSize, "x")
		remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
		require.NoError(t, err)
		head, body := part(2000), behind(2000, 128)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			put := fabric.Put{Head: head, Body: body, Tell: fabric.TellByFlag, Flag: set}
			err = errors.Join(remote.Put(t.Context(), &put), remote.PostFlag(t.Context(), set), remote.Peer.Flush(t.Context()))
		}), name)
		require.NoError(t, err)
	}
}

func TestShortPutTakesNoOp(t *testing.T) {
	remote, mem := pair(t, planSize, 0, faulty.Plan{HideMapper: true})
	before := fabric.Ops(remote.Peer)
	for i := range 200 {
		require.NoError(t, remote.Write(watched(t), planData+i, []byte{byte(i)}))
	}
	require.Equal(t, before, fabric.Ops(remote.Peer))
	require.NoError(t, remote.Put(watched(t), &fabric.Put{Body: part(8), Tell: fabric.TellByFlag, Flag: set}))
	require.Greater(t, fabric.Ops(remote.Peer), before, "one post has the put and its flag")
	require.NoError(t, remote.Peer.Flush(watched(t)))
	for i := 8; i < 200; i++ {
		require.Equal(t, byte(i), mem[planData+i])
	}
}

func TestShortPutsWaitForRoom(t *testing.T) {
	remote, mem := pair(t, planSize, 0, faulty.Plan{HideMapper: true, MaxDepth: 4})
	for i := range 200 {
		require.NoError(t, remote.Write(watched(t), planData+i, []byte{byte(i)}))
	}
	require.NoError(t, remote.Peer.Flush(watched(t)))
	for i := range 200 {
		require.Equal(t, byte(i), mem[planData+i])
	}
}
