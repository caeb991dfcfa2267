package ibv

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gopgas/gopgas/verbs/driver"
)

// ParseConfig reads a Config's fields from a list such as
//
//	device=mlx5_0,port=1,gid=10.0.0.1,mtu=1024,retries=6,inline=256,sl=3,tc=106
//
// Fields that s does not name keep their zero value.
func ParseConfig(s string) (Config, error) {
	var c Config
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		name, value, _ := strings.Cut(item, "=")
		if err := c.set(name, value); err != nil {
			return Config{}, fmt.Errorf("%w: ibv: %q: %w", driver.ErrInvalid, item, err)
		}
	}
	_, err := c.normalize()
	return c, err
}

// set changes the setting of a name. The value is checked later, with the others.
func (c *Config) set(name, value string) (err error) {
	byteOf := func() (uint8, error) {
		n, err := strconv.ParseUint(value, 10, 8)
		return uint8(n), err
	}
	switch name {
	case "device":
		c.Device = value
	case "gid":
		c.GID = value
	case "port":
		c.Port, err = strconv.Atoi(value)
	case "mtu":
		c.MTU, err = strconv.Atoi(value)
	case "retries":
		c.RetryCount, err = strconv.Atoi(value)
	case "inline":
		c.MaxInline, err = strconv.Atoi(value)
	case "sl":
		c.ServiceLevel, err = byteOf()
	case "tc":
		c.TrafficClass, err = byteOf()
	default:
		return fmt.Errorf("no such setting: choose device, port, gid, mtu, retries, inline, sl or tc")
	}
	return err
}
