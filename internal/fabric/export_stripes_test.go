package fabric

// Inbound returns the number of passive ends at this rank.
func (f *Fabric) Inbound() int {
	f.peersMu.Lock()
	defer f.peersMu.Unlock()
	return len(f.inbound)
}
