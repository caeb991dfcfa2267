//go:build linux

package main

import (
	"bytes"
	"flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// paper is the setting of the experiment of SIGCOMM 2016: 4 MiB in packets of 1 KiB, and 1
// packet in 256 lost.
const (
	paperPackets = 4096
	paperLoss    = 1.0 / 256
	givenUp      = 1_000_000 // packets
)

func TestGoBack0NeverFinishesWhereOthersDo(t *testing.T) {
	for seed := range uint64(testwatch.Rounds(20)) {
		n := network{window: 1024, delay: 16, loss: paperLoss, seed: seed}
		zero := n.deliver(goBack0, paperPackets, givenUp)
		require.False(t, zero.finished, "seed %d", seed)
		require.Equal(t, givenUp, zero.sent)
		require.Less(t, zero.farthest, paperPackets, "no receiver ever had the whole message")

		gbn := n.deliver(goBackN, paperPackets, givenUp)
		require.True(t, gbn.finished)
		// A NAK comes a round trip after the loss. The sender repeats as many packets, or a
		// whole window if it waits for its timer.
		require.LessOrEqual(t, gbn.sent, paperPackets+gbn.lost*(2*n.delay+2)+gbn.timeouts*n.window)

		one := n.deliver(selective, paperPackets, givenUp)
		require.True(t, one.finished)
		require.LessOrEqual(t, one.sent, paperPackets+one.lost+one.timeouts)
		require.Less(t, one.sent, gbn.sent)
	}
}

func TestRecoveriesSendEachPacketOnceWithoutLoss(t *testing.T) {
	for _, r := range []recovery{goBack0, goBackN, selective} {
		for _, window := range []int{1, 7, 1024} {
			got := network{window: window, delay: 5, seed: 1}.deliver(r, 100, 1000)
			got.slots = 0
			require.Equal(t, result{recovery: r, finished: true, sent: 100, farthest: 100}, got)
		}
	}
}

// Short messages get through, so that the defect hides in tests of short messages.
func TestGoBack0FinishesShortMessages(t *testing.T) {
	for seed := range uint64(20) {
		require.True(t, network{window: 1024, delay: 16, loss: paperLoss, seed: seed}.deliver(goBack0, 64, givenUp).finished)
	}
}

func TestRecoveriesFinishWhereHalfOfAllPacketsAreLost(t *testing.T) {
	for seed := range uint64(20) {
		n := network{window: 16, delay: 3, loss: 0.5, seed: seed}
		for _, r := range []recovery{goBackN, selective} {
			got := n.deliver(r, 200, givenUp)
			require.True(t, got.finished, "%v, seed %d", r, seed)
			require.Equal(t, 200, got.farthest)
			require.Positive(t, got.timeouts, "responses are lost, too")
		}
	}
}

func TestLivelockPrintsOneRowForEachRecovery(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run([]string{"livelock", "-seed", "3", "-limit", "100000"}, &out, &out))
	rows := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, rows, 6)
	require.Equal(t, "1 message of 4096 packets, 1 in 256 lost, window 1024, delay 16, seed 3", rows[0])
	for i, end := range []string{"unfinished", "finished", "finished"} {
		cells := strings.Fields(rows[3+i])
		require.Equal(t, []string{[]string{"go-back-0", "go-back-N", "selective"}[i], end}, cells[:2])
	}
	require.Equal(t, "100000", strings.Fields(rows[3])[2])
}

func TestCommandsRefuseWrongArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"fly"}, {"livelock", "-packets", "0"}, {"livelock", "-loss", "-1"}, {"livelock", "more"},
		{"sniff"}, {"sniff", "-r", "f", "eth0"}, {"sniff", "a", "b"}, {"sniff", "-n", "-1", "a"}, {"sniff", "-r", "/nowhere"}} {
		var help bytes.Buffer
		require.Error(t, run(args, &help, &help), args)
	}
	for _, args := range [][]string{{"-h"}, {"livelock", "-h"}, {"sniff", "-h"}} {
		var help bytes.Buffer
		require.ErrorIs(t, run(args, &help, &help), flag.ErrHelp)
		require.Contains(t, help.String(), "\troce ", args)
	}
}
