//go:build !mutants

package mutant

// Each constant says what is broken while it is true.
const (
	// FlagBeforeData: a notification's flag is stored before its data.
	FlagBeforeData = false
	// FlushWithoutBarrier: a flush returns without full barrier or acknowledgement.
	FlushWithoutBarrier = false
	// MissingWaiterCheck: a waiter announces itself and parks without looking again.
	MissingWaiterCheck = false
	// UpdateInTwoSteps: an atomic loads its word and stores the result later.
	UpdateInTwoSteps = false
	// SignalAheadOfPuts: a started put leaves later, so that signals overtake it.
	SignalAheadOfPuts = false
	// SignalBeforePut: PutSignal sets its element before it puts.
	SignalBeforePut = false
	// TornPut: a put of 8 bytes arrives in two halves.
	TornPut = false
	// StaleRead: a third of the reads of a place return what an earlier one returned.
	StaleRead = false
	// AccumulateLate: an accumulate without results leaves later, so that others overtake it.
	AccumulateLate = false
	// FlushOnePeer: the flush of a job flushes its first peer only.
	FlushOnePeer = false
	// QueueFlushesNothing: the flush of a queue waits for no operation.
	QueueFlushesNothing = false
	// QueueSharesConnection: a queue posts on the connection of all other operations.
	QueueSharesConnection = false
	// EpochOfOnePeer: Start and Wait wait for the first of their peers only.
	EpochOfOnePeer = false
	// StartWithoutPost: an access epoch begins before the targets' Post.
	StartWithoutPost = false
	// DetachForgetsLeases: detached memory is freed although ranks have leases on it.
	DetachForgetsLeases = false
	// OpenAnyGeneration: Open takes the pointer to an earlier attachment.
	OpenAnyGeneration = false
	// LocateAnyWindow: a window takes the pointers of other windows.
	LocateAnyWindow = false
	// StoreWithoutRing: a store to an element wakes no goroutine that waits for it, and none looks again.
	StoreWithoutRing = false
	// LockHandedToAll: all ranks that wait get a lock, whatever their modes.
	LockHandedToAll = false
	// LookOnce: a goroutine that waits for an element looks only when a bell rings.
	LookOnce = false
)

// Later is for mutants: it runs nothing.
func Later(func()) {}

// Pause is for mutants: it does nothing.
func Pause() {}

// Stale is for mutants: it changes nothing.
func Stale(any, []byte) {}
