package wire

import (
	"encoding/hex"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// These frames are those of scapy's tests of RoCE. A ConnectX-4 Lx sent the first one.
const (
	hardwareCNP = "e41d2dab2bc27cfe90643b32080045c2003c718c4000401191610a0011010a001201000012b7002800008100ffff4000011800" +
		"0000000000000000000000000000000000000082fd002a"
	unreliableSend = "248a07a8fa22248a07a8fa220800450100400478400040" + "11b4d5c0a80007c0a80007c00012b7002caca22460ffff000000d300cf1710" +
		"4630818be28935d90e9a95505401be885e50000078f353f3"
)

func unhex(t *testing.T, text string) []byte {
	b, err := hex.DecodeString(text)
	require.NoError(t, err)
	return b
}

func TestFrameOfHardwareIsIntact(t *testing.T) {
	f, err := DecodeFrame(unhex(t, hardwareCNP))
	require.NoError(t, err)
	require.True(t, f.Intact(), "%#x is not %#x", f.WantICRC, f.GotICRC)
	require.Equal(t, netip.MustParseAddr("10.0.17.1"), f.Src)
	require.Equal(t, netip.MustParseAddr("10.0.18.1"), f.Dst)
	require.Equal(t, uint16(0x718c), f.ID)
	require.Equal(t, byte(0xc2), f.TrafficClass)
	require.Equal(t, Packet{Op: Congestion, BECN: true, PKey: DefaultPKey, QPN: 0x118}, f.Packet)
}

func TestFrameOfUnknownOpcodeIsIntact(t *testing.T) {
	f, err := DecodeFrame(unhex(t, unreliableSend))
	require.NoError(t, err)
	require.True(t, f.Intact())
	require.Equal(t, "OPCODE_0x24", f.Packet.Op.String())
	require.Equal(t, uint32(13571856), f.Packet.PSN)
	require.Len(t, f.Packet.Payload, 18)
}

// TestICRCCoversWhatRoutersKeep changes each byte of the frames. Fields that routers
// change leave the frame intact.
func TestICRCCoversWhatRoutersKeep(t *testing.T) {
	free := map[int]string{
		15: "type of service", 22: "time to live", 24: "checksum of IP", 25: "checksum of IP",
		40: "checksum of UDP", 41: "checksum of UDP", 46: "congestion bits of the BTH",
	}
	for _, text := range []string{hardwareCNP, unreliableSend} {
		whole := unhex(t, text)
		for i := 14; i < len(whole); i++ {
			b := append([]byte(nil), whole...)
			b[i] ^= 1
			f, err := DecodeFrame(b)
			intact := err == nil && f.Intact()
			require.Equal(t, free[i] != "", intact, "byte %d: %s", i, free[i])
		}
	}
}
