//go:build !race

package tcp

func raceSending()  {}
func raceReceived() {}
