package bootstrap

import "time"

// DefaultSilence bounds the silence of a rendezvous unless Events give a bound, of
// silence.Least or more.
const DefaultSilence = 30 * time.Second

// listen has the client ask the rendezvous whether it still answers, and end the connection
// if it was silent for the bound.
func (c *Client) listen(bound time.Duration) {
	if bound <= 0 {
		bound = DefaultSilence
	}
	c.silence.Start(bound,
		func() { c.post(message{kind: kindPing}) }, //nolint:errcheck // fails when lost already
		func(bound time.Duration) { c.end(&LostError{Hosted: c.hosted, Silence: bound}) })
}
