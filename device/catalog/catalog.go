package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/device"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// Errors of this package. Match them with errors.Is.
var (
	// ErrNone: no offer satisfies the rules of client and publisher.
	ErrNone = errors.New("no published memory satisfies the rules")
	// ErrFull: offers satisfy the rules, and none has room.
	ErrFull = errors.New("no room in the published memory that satisfies the rules")
	// ErrLease: the lease was freed, or is of another catalog.
	ErrLease = errors.New("lease is not in the books")
	// ErrBooks: the books at an owner are damaged; a rank has written over them.
	ErrBooks = errors.New("damaged books of published memory")
	// ErrOffer: an offer without memory, or too many of them.
	ErrOffer = errors.New("unusable offer")
)

// Rules restrict which memory a client takes, and which clients a publisher serves. The zero Rules
// restrict nothing.
type Rules struct {
	// Farthest is the longest way that transfers of a client may go.
	Farthest Way
	// Kinds of memory, if any. Only a client's counts.
	Kinds []device.Kind
	// Quota bounds the bytes of the offer that are handed out at a time, if it is not 0. Only a publisher's counts.
	Quota int
}

// An Offer is memory that this rank publishes. The catalog has the piece until [Catalog.Close] returns nil.
type Offer struct {
	Name  string
	Piece *device.Piece
	Rules Rules
}

// Published is an offer as all ranks know it.
type Published struct {
	Name   string
	Rank   int // its owner
	Number int // among the owner's offers
	Host   int // the lowest rank of the team on the owner's host
	Kind   device.Kind
	Device string // address of its PCI device, "" if it has none
	Node   int
	Size   int
	Rules  Rules
}

// A Catalog has the offers of a team. Its methods may be called from any goroutine.
type Catalog struct {
	team    *runtime.Team
	inner   *team.Team
	topo    Topology
	offers  []Published
	windows []*window.Window[byte] // by number: the offers of all ranks with that number
	books   *window.Window[uint64]
}

// maxOffers bounds the offers of one rank.
const maxOffers = 64

// A card describes the offers of a rank to the others.
type card struct {
	Offers []Published
	Err    string
}

// Publish makes a catalog of the offers of all ranks of t, each with up to 64 of them, or none. The
// argument topo says where this host's devices are. All ranks get the same list. If a provider of the job
// does not register the kind of an offer, all ranks get driver.ErrKind. Kind: collective.
func Publish(ctx context.Context, t *runtime.Team, topo Topology, offers ...Offer) (*Catalog, error) {
	c := &Catalog{team: t, inner: team.Of(t), topo: topo}
	most, err := c.meet(ctx, offers)
	if err != nil {
		return nil, fail("Publish", err)
	}
	for i := range most {
		n, on := 0, (*device.Piece)(nil)
		if i < len(offers) {
			on = offers[i].Piece
			n = len(on.Bytes())
		}
		w, err := window.AllocateV[byte](ctx, t, n, window.On(on), window.WithSlots(0))
		if err != nil {
			return nil, errors.Join(fail("Publish", err), c.Close(ctx))
		}
		c.windows = append(c.windows, w)
	}
	if c.books, err = window.Allocate[uint64](ctx, t, most*bookWords, window.WithSlots(0)); err != nil {
		return nil, errors.Join(fail("Publish", err), c.Close(ctx))
	}
	return c, nil
}

// meet enters the offers of all ranks. It returns the number of offers of the rank that has most.
func (c *Catalog) meet(ctx context.Context, offers []Offer) (most int, err error) {
	mine, err := json.Marshal(c.cardOf(offers))
	if err != nil {
		return 0, err
	}
	all, err := c.team.Exchange(ctx, mine)
	if err != nil {
		return 0, err
	}
	for r, b := range all {
		var theirs card
		if err := json.Unmarshal(b, &theirs); err != nil {
			return 0, fmt.Errorf("card of rank %d: %w", r, err)
		}
		if theirs.Err != "" {
			return 0, fmt.Errorf("rank %d: %w: %s", r, ErrOffer, theirs.Err)
		}
		c.offers = append(c.offers, theirs.Offers...)
		most = max(most, len(theirs.Offers))
	}
	return most, nil
}

// cardOf describes this rank's offers.
func (c *Catalog) cardOf(offers []Offer) (mine card) {
	if len(offers) > maxOffers {
		mine.Err = fmt.Sprintf("%d offers, at most %d", len(offers), maxOffers)
		return mine
	}
	for i, o := range offers {
		if o.Piece == nil {
			mine.Err = fmt.Sprintf("offer %q has no piece", o.Name)
			return mine
		}
		about := o.Piece.About()
		mine.Offers = append(mine.Offers, Published{Name: o.Name, Rank: c.team.Rank(), Number: i, Host: c.hostOf(c.team.Rank()), Kind: about.Kind,
			Device: about.Device, Node: about.Node, Size: len(o.Piece.Bytes()), Rules: o.Rules})
	}
	return mine
}

// hostOf returns the lowest rank on the host of a rank.
func (c *Catalog) hostOf(rank int) int {
	for r, host := range c.inner.Hosts {
		if host == c.inner.Hosts[rank] {
			return r
		}
	}
	return rank
}

// Offers returns all offers, in the order of ranks. The caller must not change them. Kind: local.
func (c *Catalog) Offers() []Published { return c.offers }

// Close ends the catalog, with all leases, at all ranks. Then the pieces are their publishers' again.
// Kind: collective.
func (c *Catalog) Close(ctx context.Context) error {
	var errs []error
	for _, w := range c.windows {
		errs = append(errs, w.Free(ctx))
	}
	if c.books != nil {
		errs = append(errs, c.books.Free(ctx))
	}
	c.windows, c.books = nil, nil
	return fail("Close", errors.Join(errs...))
}

// fail adds the operation to an error of the catalog.
func fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("catalog: %s: %w", op, err)
}
