package runtime

import "golang.org/x/sys/unix"

// betweenProcesses returns nil: ranks may be processes here.
func betweenProcesses() error { return nil }

// coreMask returns the affinity mask of this process; nil: unknown.
func coreMask() (mask []uint64) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	for _, word := range set {
		mask = append(mask, uint64(word))
	}
	for n := len(mask); n > 0 && mask[n-1] == 0; n-- {
		mask = mask[:n-1]
	}
	return mask
}

// memorySize returns the bytes of this host's memory; 0: unknown.
func memorySize() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}
