// Package wire encodes and decodes packets of RoCE v2: Ethernet, IPv4 or IPv6, UDP to
// [Port], the transport headers of InfiniBand, the payload and the invariant CRC.
//
//	Ethernet  IP  UDP | BTH | RETH, AETH, AtomicETH, ... | payload, padding | ICRC
//	                  ^ a Packet                                            ^ 4 bytes
//
// A [Frame] is a whole Ethernet frame, a [Packet] the part behind the UDP header. The opcode
// of the BTH says which headers follow. Numbers are big-endian, but the ICRC is
// little-endian. The InfiniBand Architecture Specification has
// the layouts: volume 1, chapter 9, and annex A17 on RoCE v2.
//
// # The invariant CRC
//
// The ICRC is the CRC-32 of Ethernet over fields that no router changes: 8 bytes of
// ones, where InfiniBand has its local route header; the IP and UDP headers; the BTH, the
// other headers, the payload and the padding. Fields that routers change count as ones: of
// IPv4 type of service, time to live and checksum; of IPv6 traffic class, flow label and
// hop limit; of UDP the checksum; of the BTH the byte with both congestion bits. The IPv4
// identification counts as it is, so only code that sees IP headers can compute it.
package wire
