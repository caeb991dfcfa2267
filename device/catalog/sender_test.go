package catalog

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/device"
	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/internal/testwatch"
)

// A process that finds the address without the ticket gets nothing, nor does it keep others from theirs.
func TestSenderGivesTheDescriptorForTheTicketOnly(t *testing.T) {
	fd, err := memory.NewMemfd("shared", 4096)
	require.NoError(t, err)
	m := device.Wrap(fd.Memory(0, fd.Size()), device.About{Kind: device.Memfd}, fd.Close)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix"})
	require.NoError(t, err)
	another, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix"}) // of another job at the same time
	require.NoError(t, err)
	defer another.Close()
	s := &sender{m, l, []byte("the ticket")}
	defer func() { require.NoError(t, m.Close()) }()
	defer s.serve(t.Context())()
	silent, err := net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr)) // sends no ticket, and stays
	require.NoError(t, err)
	defer silent.Close()
	for _, ticket := range []string{"the ticket", strings.Repeat("x", 10)} {
		got, err := receive(testwatch.Context(t), &shareCard{Address: l.Addr().String(), Ticket: []byte(ticket)})
		if ticket == "the ticket" {
			require.NoError(t, err)
			require.NoError(t, got.Close())
			continue
		}
		require.ErrorIs(t, err, device.ErrNoDescriptor)
	}
}
