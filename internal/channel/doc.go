// Package channel moves the messages of collective calls between this rank and one peer: in
// order, through one bounded channel in each direction.
//
//	this rank                                the peer
//	Send  --- slot: header, few bytes --->   Next, Free
//	      === ring: a piece ============>
//	      === landing: a long piece ====>    its destination
//	      <-- taken: slots freed --------
//	      <-- offer: where to land ------
//
// An [End] is this rank's endpoint of both channels. Its memory lies at this rank and only
// the peer writes it: slots and rings of the peer's messages, and the peer's two replies to
// this rank's messages. No end manages a heap or a list.
//
// Every message has a header in a slot, in the order of sending. Its bytes go in one of
// three ways, which both ends know by length and use:
//
//   - Up to [MostInSlot] bytes lie in the slot.
//   - More bytes lie in a ring, in pieces. Each piece has a slot behind it. So a message may
//     be longer than the ring. Long pieces have a ring of their own, and the short ring stays
//     in a core's own cache.
//   - A long message that its receiver copies lands, if the device has landings: behind its
//     header, the pieces go where the receiver's offer says. A word counts the pieces that
//     landed. Header and first piece leave together, once the offer is there. A header that
//     the receiver needs to find a difference in length goes ahead of the offer.
//
// Nothing overtakes: the next slot is the next step of the expected message, or the two ends
// differ. Then the receiver returns a [Differs] or a [LengthError].
//
// Lifecycle: New, then for each message BeginSend and Send until no step is left, and at
// its receiver BeginReceive, and Next and Free in turns. Close ends the endpoint.
//
// # Room
//
// The receiver counts the slots that it freed. It tells the sender after each half of the slots,
// each quarter of the short ring and each piece in the long one. The sender knows the positions in
// the rings behind each slot, so one count returns slots and rings.
//
// Invariant: a sender waits for no room once its receiver has freed all slots but the last
// Lead-1. In a ring, these pieces and the next one take at most the room of Lead longest
// pieces. At the ring's end less than one is left out. The receiver told the sender of all
// bytes that it freed, but for the rest of the ring (see ringsOf). The slots have room as
// well: 1 is not free, less than 31 are not told.
//
// # No members wait in a circle
//
// All members of a team may exchange messages at the same time. A member makes its offer
// before it waits, and sends step s only after it has received s-Lead steps. Let r(X) be the
// number of steps that X has received in this exchange, without bound once it has all.
//
//   - X waits for room for step s at Z. By the invariant r(Z) < s-Lead, and X sent no step
//     ahead: s-Lead <= r(X). So r(Z) < r(X).
//   - X waits for step r(X)+1 from Y. If Y waits for room for that step or an earlier one at
//     Z, then r(Z) < r(X)+1-Lead. If Y waits to receive first, then r(Y) < r(X)+1-Lead.
//   - X waits for an offer of Z. Then Z has not begun this exchange.
//
// Lead is at least 1, so r falls along each chain of waits. The chain ends at a member that
// has not begun this exchange, or that waits for none.
package channel
