package wire

import (
	"encoding/binary"
	"errors"
	"net/netip"
)

// Sizes of headers in bytes, and fields of them.
const (
	etherSize = 14
	vlanSize  = 4
	ipv4Size  = 20
	ipv6Size  = 40
	udpSize   = 8

	etherVLAN   = 0x8100
	etherQinQ   = 0x88a8
	etherIPv4   = 0x0800
	etherIPv6   = 0x86dd
	protocolUDP = 17
	hopLimit    = 64
	dontSplit   = 0x4000 // of IPv4's fragment field
	moreOrAt    = 0x3fff // of IPv4's fragment field: more fragments, or an offset
)

// ErrOther reports a frame that is no RoCE v2.
var ErrOther = errors.New("not RoCE v2")

// MAC is an Ethernet address.
type MAC [6]byte

// A Frame is an Ethernet frame with a packet of RoCE v2.
type Frame struct {
	SrcMAC, DstMAC MAC
	Src, Dst       netip.Addr
	SrcPort        uint16
	ID             uint16 // IPv4 identification
	Packet         Packet

	// These fields are of decoded frames only.
	TrafficClass byte   // DSCP and ECN, with which the network marks congestion
	HopLimit     byte   // time to live
	GotICRC      uint32 // as sent
	WantICRC     uint32 // computed from the frame's bytes
}

// Intact reports whether the ICRC of a decoded frame is right.
func (f *Frame) Intact() bool { return f.GotICRC == f.WantICRC }

// DecodeFrame returns the frame in b. Its payload refers to b. Bytes behind the IP packet,
// such as Ethernet's padding, do not matter. A frame of another protocol is ErrOther. A
// frame to UDP port 4791 that has no packet of RoCE v2 is ErrMalformed.
func DecodeFrame(b []byte) (Frame, error) {
	if len(b) < etherSize {
		return Frame{}, ErrOther
	}
	f := Frame{DstMAC: MAC(b), SrcMAC: MAC(b[6:])}
	kind, at := binary.BigEndian.Uint16(b[12:]), etherSize
	for (kind == etherVLAN || kind == etherQinQ) && len(b) >= at+vlanSize {
		kind, at = binary.BigEndian.Uint16(b[at+2:]), at+vlanSize
	}
	ip := b[at:]
	var udp int // offset in ip
	switch kind {
	case etherIPv4:
		ip, udp = f.decodeIPv4(ip)
	case etherIPv6:
		ip, udp = f.decodeIPv6(ip)
	}
	if udp == 0 || len(ip) < udp+udpSize || binary.BigEndian.Uint16(ip[udp+2:]) != Port {
		return Frame{}, ErrOther
	}
	f.SrcPort = binary.BigEndian.Uint16(ip[udp:])
	length := int(binary.BigEndian.Uint16(ip[udp+4:]))
	if length < udpSize || udp+length > len(ip) {
		return Frame{}, malformed("UDP length %d in an IP packet of %d bytes", length, len(ip))
	}
	ip = ip[:udp+length]
	var err error
	if f.Packet, err = Decode(ip[udp+udpSize:]); err != nil {
		return Frame{}, err
	}
	f.GotICRC = binary.LittleEndian.Uint32(ip[len(ip)-icrcSize:])
	f.WantICRC = icrc(ip[:len(ip)-icrcSize], udp)
	return f, nil
}

// decodeIPv4 returns the IP packet without bytes behind it, and the offset of its UDP
// header. The offset is 0 if there is none.
func (f *Frame) decodeIPv4(b []byte) (ip []byte, udp int) {
	if len(b) < ipv4Size || b[0]>>4 != 4 || b[9] != protocolUDP || binary.BigEndian.Uint16(b[6:])&moreOrAt != 0 {
		return nil, 0
	}
	header, length := int(b[0]&0xf)*4, int(binary.BigEndian.Uint16(b[2:]))
	if header < ipv4Size || length < header || length > len(b) {
		return nil, 0
	}
	f.TrafficClass, f.HopLimit, f.ID = b[1], b[8], binary.BigEndian.Uint16(b[4:])
	f.Src, f.Dst = netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:]))
	return b[:length], header
}

// decodeIPv6 reads the header of IP and returns the packet, and where UDP begins there. ip is nil
// for other packets, and for those that are cut.
func (f *Frame) decodeIPv6(b []byte) (ip []byte, udp int) {
	if len(b) < ipv6Size || b[0]>>4 != 6 || b[6] != protocolUDP {
		return nil, 0
	}
	length := ipv6Size + int(binary.BigEndian.Uint16(b[4:]))
	if length > len(b) {
		return nil, 0
	}
	f.TrafficClass, f.HopLimit = b[0]<<4|b[1]>>4, b[7]
	f.Src, f.Dst = netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:]))
	return b[:length], ipv6Size
}

// Append appends the frame with its ICRC to b, and returns the longer slice. The UDP
// checksum is 0, which says that there is none, as devices send it. Precondition: Src and Dst
// are both IPv4 or both IPv6.
func (f *Frame) Append(b []byte) []byte {
	b = append(append(b, f.DstMAC[:]...), f.SrcMAC[:]...)
	kind, header := uint16(etherIPv4), ipv4Size
	if f.Src.Is6() {
		kind, header = etherIPv6, ipv6Size
	}
	b = binary.BigEndian.AppendUint16(b, kind)
	at := len(b)
	b = append(b, make([]byte, header+udpSize)...)
	b = f.Packet.Append(b)
	ip := b[at:]
	f.putIP(ip, len(ip)+icrcSize)
	udp := ip[header:]
	binary.BigEndian.PutUint16(udp, f.SrcPort)
	binary.BigEndian.PutUint16(udp[2:], Port)
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)+icrcSize))
	return binary.LittleEndian.AppendUint32(b, icrc(ip, header))
}

// putIP writes the IP header of a packet of length bytes.
func (f *Frame) putIP(ip []byte, length int) {
	if f.Src.Is6() {
		ip[0], ip[6], ip[7] = 6<<4, protocolUDP, hopLimit
		binary.BigEndian.PutUint16(ip[4:], uint16(length-ipv6Size))
		copy(ip[8:], f.Src.AsSlice())
		copy(ip[24:], f.Dst.AsSlice())
		return
	}
	ip[0], ip[8], ip[9] = 4<<4|ipv4Size/4, hopLimit, protocolUDP
	binary.BigEndian.PutUint16(ip[2:], uint16(length))
	binary.BigEndian.PutUint16(ip[4:], f.ID)
	binary.BigEndian.PutUint16(ip[6:], dontSplit)
	copy(ip[12:], f.Src.AsSlice())
	copy(ip[16:], f.Dst.AsSlice())
	binary.BigEndian.PutUint16(ip[10:], checksum(ip[:ipv4Size]))
}

// checksum returns the checksum of an IPv4 header whose own field is 0.
func checksum(header []byte) uint16 {
	sum := uint32(0)
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}
