package driver

// A Landing is a key to memory that its owner can replace. A peer writes into
// memory that the owner opens for one transfer and may take back during the
// transfer. To take back the memory of an [MR] would break the connection.
type Landing interface {
	// Open directs the peers' writes at the returned address, and behind it, to
	// mem until Shut. The landing must be shut before. Open neither waits nor
	// allocates.
	Open(mem []byte) RemoteAddr
	// Shut takes the memory back: when it returns, no peer touches it any more. The
	// provider discards writes to it that are under way or arrive later. They
	// complete as if they had been applied. A landing that is shut has no memory.
	Shut()
	// Close invalidates the key, as that of a region.
	Close() error
}
