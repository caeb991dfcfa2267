//go:build linux

package tcp

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/gopgas/gopgas/verbs/driver"
)

// A QP address on the wire holds the endpoints to dial and the QP's secret.
//
//	0     4       6     7     8      12          28       36
//	magic version count flags QP     token       device   count x { IP as 16 bytes, port }
//
// Flag 1 says that the device uses TLS.
const (
	addressMagic   = 0x51544750 // "PGTQ"
	addressVersion = 2
	addressFixed   = 36

	offAddressCount  = 6
	offAddressFlags  = 7
	offAddressDevice = 28 // device and endpoints
	addressTLS       = 1
	endpointSize     = 18
	maxEndpoints     = 16
	tokenSize        = 16
)

// token is the secret of one QP between two resets.
type token [tokenSize]byte

// address is a decoded QP address.
type address struct {
	qp        uint32
	token     token
	device    uint64 // random: queue pairs with the same number are on the same device
	endpoints []netip.AddrPort
	tls       bool
}

func newToken() (t token) {
	rand.Read(t[:])
	return t
}

func newDeviceID() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// encode returns the bytes of an address, in the layout above.
func (a *address) encode() []byte {
	b := make([]byte, 0, addressFixed+len(a.endpoints)*endpointSize)
	b = binary.LittleEndian.AppendUint32(b, addressMagic)
	b = binary.LittleEndian.AppendUint16(b, addressVersion)
	b = append(b, byte(len(a.endpoints)), 0)
	if a.tls {
		b[offAddressFlags] = addressTLS
	}
	b = binary.LittleEndian.AppendUint32(b, a.qp)
	b = append(b, a.token[:]...)
	b = binary.LittleEndian.AppendUint64(b, a.device)
	for _, e := range a.endpoints {
		ip := e.Addr().As16()
		b = append(b, ip[:]...)
		b = binary.LittleEndian.AppendUint16(b, e.Port())
	}
	return b
}

// decodeAddress checks the bytes of a peer's address and decodes them. Every error is ErrInvalid.
func decodeAddress(b []byte) (address, error) {
	var a address
	bad := func(what string) (address, error) {
		return address{}, fmt.Errorf("%w: peer address %s; pass what the peer's Address returned", driver.ErrInvalid, what)
	}
	if len(b) < addressFixed || binary.LittleEndian.Uint32(b) != addressMagic {
		return bad("is not one of provider tcp")
	}
	if v := binary.LittleEndian.Uint16(b[4:]); v != addressVersion {
		return bad(fmt.Sprintf("has version %d, not %d", v, addressVersion))
	}
	n := int(b[offAddressCount])
	if b[offAddressFlags]&^addressTLS != 0 {
		return bad("has unknown flags")
	}
	a.tls = b[offAddressFlags]&addressTLS != 0
	if n == 0 || n > maxEndpoints || len(b) != addressFixed+n*endpointSize {
		return bad("has the wrong length")
	}
	a.qp = binary.LittleEndian.Uint32(b[8:])
	copy(a.token[:], b[12:])
	a.device = binary.LittleEndian.Uint64(b[offAddressDevice:])
	for b = b[addressFixed:]; len(b) > 0; b = b[endpointSize:] {
		ip := netip.AddrFrom16([16]byte(b)).Unmap()
		port := binary.LittleEndian.Uint16(b[16:])
		if port == 0 || ip.IsUnspecified() || ip.IsMulticast() {
			return bad("names an endpoint that cannot be dialed")
		}
		a.endpoints = append(a.endpoints, netip.AddrPortFrom(ip, port))
	}
	return a, nil
}
