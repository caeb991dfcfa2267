package wire

import "hash/crc32"

// longestHeaders is the size of the largest IP header, a UDP header and a BTH.
const longestHeaders = 60 + udpSize + bthSize

// icrc computes the ICRC of an IP packet whose UDP header begins at udp. ip ends where the
// ICRC begins. Precondition: ip has a whole BTH.
func icrc(ip []byte, udp int) uint32 {
	var masked [8 + longestHeaders]byte
	for i := range 8 {
		masked[i] = 0xff
	}
	end := udp + udpSize + bthSize
	h := masked[8 : 8+end]
	copy(h, ip)
	if h[0]>>4 == 4 {
		h[1] = 0xff               // type of service
		h[8] = 0xff               // time to live
		h[10], h[11] = 0xff, 0xff // checksum
	} else {
		h[0] |= 0x0f                        // traffic class
		h[1], h[2], h[3] = 0xff, 0xff, 0xff // traffic class, flow label
		h[7] = 0xff                         // hop limit
	}
	h[udp+6], h[udp+7] = 0xff, 0xff // checksum
	h[udp+udpSize+4] = 0xff         // FECN, BECN and reserved bits
	sum := crc32.ChecksumIEEE(masked[:8+end])
	return crc32.Update(sum, crc32.IEEETable, ip[end:])
}
