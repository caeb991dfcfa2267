package driver

// A Landing is a key behind which memory comes and goes: a peer writes into memory
// that its owner lends for one transfer and may take back in the middle of it, which
// would break the connection with an [MR].
type Landing interface {
	// Open has what peers write to the returned address, and behind it, go to mem
	// until Shut. It is not open before. Open neither waits nor allocates.
	Open(mem []byte) RemoteAddr
	// Shut takes the memory back: when it returns, no peer touches it any more.
	// Writes to it that are under way or still come are thrown away, and complete as
	// if they had been applied. Behind a landing that is shut there is no memory.
	Shut()
	// Close takes the key out of service, as that of a region.
	Close() error
}
