package pmi

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
)

// A Client is a rank's end of its connection with the process manager. One goroutine uses
// it at a time. The end of a context in a call makes the Client useless.
type Client struct {
	conn    *conn
	version int
	rank    int
	size    int
	space   string // name of the key-value space
	aborted bool
}

// A start holds the environment's part of an init.
type start struct {
	version    int
	rank, size int // of version 2, and of a manager that does not say
	id         string
	job        string
	byPort     bool // the manager tells rank and size
}

// begin says init over a connection.
func begin(ctx context.Context, raw net.Conn, s start) (c *Client, err error) {
	c = &Client{conn: newConn(raw), version: s.version, rank: s.rank, size: s.size}
	if s.byPort {
		if err := c.identify(ctx, s.id); err != nil {
			return nil, err
		}
	}
	sub := "1"
	if s.version == 2 {
		sub = "0"
	}
	m := newMessage("init", "pmi_version", strconv.Itoa(s.version), "pmi_subversion", sub)
	if _, err := c.conn.request(ctx, m, "response_to_init"); err != nil {
		return nil, err
	}
	if s.version == 2 {
		return c, c.fullInit(ctx, s)
	}
	name, err := c.conn.request(ctx, newMessage("get_my_kvsname"), "my_kvsname")
	c.space = name.get("kvsname")
	return c, err
}

// identify tells the manager at a port which process this is. It takes rank and size.
func (c *Client) identify(ctx context.Context, id string) (err error) {
	if _, err = c.conn.request(ctx, newMessage("initack", "pmiid", id), "initack"); err != nil {
		return err
	}
	set := map[string]*int{"size": &c.size, "rank": &c.rank, "debug": new(int)}
	for range set {
		var m message
		if err := c.conn.within(ctx, func() (err error) { m, err = c.conn.receive(); return err }); err != nil {
			return err
		}
		if m.command != "set" || len(m.fields) != 1 || set[m.fields[0].key] == nil {
			return wrong("%s before init", m.command)
		}
		if *set[m.fields[0].key], err = strconv.Atoi(m.fields[0].value); err != nil {
			return wrong("%s %q", m.fields[0].key, m.fields[0].value)
		}
	}
	return c.checkPlace()
}

// fullInit is the second half of init in version 2.
func (c *Client) fullInit(ctx context.Context, s start) (err error) {
	c.conn.framed = true
	m, err := c.conn.request(ctx, newMessage("fullinit", "pmijobid", s.job, "pmirank", strconv.Itoa(s.rank), "threaded", "FALSE"), "fullinit-response")
	if err != nil {
		return err
	}
	for _, number := range []struct {
		key string
		to  *int
	}{{"rank", &c.rank}, {"size", &c.size}} {
		if *number.to, err = strconv.Atoi(m.get(number.key)); err != nil {
			return wrong("%s %q", number.key, m.get(number.key))
		}
	}
	return c.checkPlace()
}

// checkPlace returns ErrWire for numbers that are no place in a job.
func (c *Client) checkPlace() error {
	if c.rank < 0 || c.rank >= c.size {
		return wrong("rank %d of %d", c.rank, c.size)
	}
	return nil
}

// Rank returns the number of this process.
func (c *Client) Rank() int { return c.rank }

// Size returns the number of processes of the job.
func (c *Client) Size() int { return c.size }

// Put stores a value in the key-value space. Other ranks find it after the next Fence.
// Kind: local.
func (c *Client) Put(ctx context.Context, key, value string) error {
	if err := checkPair(key, value); err != nil {
		return err
	}
	var err error
	if c.version == 2 {
		_, err = c.conn.request(ctx, newMessage("kvs-put", "key", key, "value", value), "kvs-put-response")
	} else {
		_, err = c.conn.request(ctx, newMessage("put", "kvsname", c.space, "key", key, "value", value), "put_result")
	}
	return err
}

// Fence returns when all ranks of the job have called it. Kind: collective.
func (c *Client) Fence(ctx context.Context) error {
	var err error
	if c.version == 2 {
		_, err = c.conn.request(ctx, newMessage("kvs-fence"), "kvs-fence-response")
	} else {
		_, err = c.conn.request(ctx, newMessage("barrier_in"), "barrier_out")
	}
	return err
}

// Get returns a value that a rank has put before a Fence, or ErrNotFound. Kind: local.
func (c *Client) Get(ctx context.Context, key string) (string, error) {
	if err := checkPair(key, ""); err != nil {
		return "", err
	}
	if c.version == 2 {
		return found(c.conn.request(ctx, newMessage("kvs-get", "jobid", "", "srcid", "-1", "key", key), "kvs-get-response"))
	}
	return found(c.conn.request(ctx, newMessage("get", "kvsname", c.space, "key", key), "get_result"))
}

// mappingKey names the attribute that says which ranks share a node.
const mappingKey = "PMI_process_mapping"

// OneNode reports whether the manager says that all ranks are on one node. A manager need
// not say anything.
func (c *Client) OneNode(ctx context.Context) (bool, error) {
	var text string
	var err error
	if c.version == 2 {
		text, err = found(c.conn.request(ctx, newMessage("info-getjobattr", "key", mappingKey), "info-getjobattr-response"))
	} else {
		text, err = c.Get(ctx, mappingKey)
	}
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	nodes, bad := parseMapping(text, c.size)
	if err != nil || bad != nil {
		return false, err
	}
	for _, node := range nodes {
		if node != nodes[0] {
			return false, nil
		}
	}
	return true, nil
}

// found returns the value in a response. In version 1 any refusal says that there is none.
func found(m message, err error) (string, error) {
	var refused *RefusedError
	if errors.As(err, &refused) || err == nil && m.get("found") == "FALSE" {
		return "", ErrNotFound
	}
	return m.get("value"), err
}

// Finalize takes leave: the end of this process is none of the manager's business any more.
// Behind an Abort it does nothing: the manager answers no more. Kind: local.
func (c *Client) Finalize(ctx context.Context) error {
	if c.aborted {
		return nil
	}
	response := "finalize_ack"
	if c.version == 2 {
		response = "finalize-response"
	}
	_, err := c.conn.request(ctx, newMessage("finalize"), response)
	return err
}

// Abort has the manager end all processes of the job, and this one. It does not wait.
// Version 1 carries no message. Kind: one-sided.
func (c *Client) Abort(message string) error {
	c.aborted = true
	message = strings.ReplaceAll(message, "\x00", "") // which no message can carry
	if c.version == 2 {
		return c.conn.send(newMessage("abort", "isworld", "TRUE", "msg", message[:min(len(message), MaxValue)]))
	}
	return c.conn.send(newMessage("abort", "exitcode", "1"))
}
