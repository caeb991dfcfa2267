package testwatch

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPortOfAnAddressIsFreeForOneListenerAndNoOther(t *testing.T) {
	for _, ip := range []string{"127.0.0.1", "::1"} {
		t.Run(ip, func(t *testing.T) {
			at := Address(t, ip)
			for range 2 { // one after the other
				l, err := net.Listen("tcp", at.String())
				require.NoError(t, err)
				_, err = net.Listen("tcp", at.String())
				require.Error(t, err)
				require.NoError(t, l.Close())
			}
		})
	}
}
