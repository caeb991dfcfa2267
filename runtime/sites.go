package runtime

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/tuned"
)

// A siteCard holds the part of a rank's card that only the world's members exchange.
type siteCard struct {
	fabric.Site
	Provider string // the list, as users gave it
	Name     string // of the rank's host, for errors
	Build    buildCard
	Untuned  string `json:",omitempty"` // why the rank cannot use its table of grun tune
}

// siteCard returns the card of this rank, whose table of grun tune is own.
func (j *Job) siteCard(own *tuned.Own) *siteCard {
	name, _ := os.Hostname()
	if j.opts.hosts != nil {
		name = j.host
	}
	card := &siteCard{Site: j.fabric.Site(j.host), Provider: j.opts.provider, Name: name, Build: thisBuild()}
	if own != nil && own.Err != nil {
		card.Untuned = fmt.Sprintf("%s=%s is not used: %v", tuned.Env, own.Path, own.Err)
	}
	return card
}

// settle has the fabric choose the providers between this rank and all others, by the cards of the world. All
// ranks must give the same list, so that both ends of a pair choose alike.
func (j *Job) settle(cards []*teamCard) error {
	if err := sameVersion(cards); err != nil {
		return err
	}
	all := make([]fabric.Site, len(cards))
	me := cards[j.fabric.Rank()].Site
	for rank, card := range cards {
		if card.Site.Provider != me.Provider {
			return fmt.Errorf("%w: providers %s at rank %d, %s at rank %d; give all ranks the same (grun --provider, %s)",
				ErrMismatch, me.Provider, j.fabric.Rank(), card.Site.Provider, rank, bootstrap.EnvProvider)
		}
		all[rank] = card.Site.Site
	}
	j.fabric.SetSites(all, j.opts.hosts != nil)
	for rank := range cards {
		if rank != j.fabric.Rank() && j.fabric.WayTo(rank) == "" {
			return j.noWay(rank, me, cards[rank].Site)
		}
	}
	if j.fabric.Rank() == 0 {
		for _, line := range []string{differentBuilds(cards), lackingDevices(cards), untuned(cards)} {
			if line != "" {
				fmt.Fprintln(os.Stderr, line)
			}
		}
	}
	for _, card := range cards {
		card.Site = nil // the fabric has it
	}
	j.cards = cards
	return nil
}

// noWay returns the error of a rank that no provider of the list reaches.
func (j *Job) noWay(rank int, me, peer *siteCard) error {
	text := fmt.Sprintf("provider %s does not join rank %d on %s and rank %d on %s", me.Provider, j.fabric.Rank(), me.Name, rank, peer.Name)
	if me.Name == peer.Name && me.Host != peer.Host {
		text += ", which cannot see each other's processes, as in containers"
	}
	for _, end := range []struct {
		rank int
		card *siteCard
	}{{j.fabric.Rank(), me}, {rank, peer}} {
		for _, name := range slices.Sorted(maps.Keys(end.card.Lacks)) {
			text += fmt.Sprintf("; rank %d has no %s (%s)", end.rank, name, end.card.Lacks[name])
		}
	}
	return fmt.Errorf("%w: %s; choose a list with tcp, such as shm,ibv,tcp (grun --provider, %s)", ErrUnreachable, text, bootstrap.EnvProvider)
}

// untuned returns a line that says why teams use no table of grun tune, "" if all ranks have
// the same table or none.
func untuned(cards []*teamCard) string {
	for rank, card := range cards {
		if card.Site.Untuned != "" {
			return fmt.Sprintf("gopgas: rank %d on %s: %s; teams with this rank use no table", rank, card.Site.Name, card.Site.Untuned)
		}
	}
	for rank, card := range cards {
		if card.Tuned != cards[0].Tuned {
			return fmt.Sprintf("gopgas: rank 0 on %s and rank %d on %s have different tables of grun tune; teams with both use none; set %s for all ranks, to the same file",
				cards[0].Site.Name, rank, card.Site.Name, tuned.Env)
		}
	}
	return ""
}

// lackingDevices returns a line that names the ranks without an RDMA device in a job whose
// other ranks have one: they use another provider, which users may not expect.
func lackingDevices(cards []*teamCard) string {
	var lacking []int
	have := false
	cause := ""
	for rank, card := range cards {
		have = have || slices.Contains(card.Site.Providers, "ibv")
		if c := card.Site.Lacks["ibv"]; c != "" {
			if lacking = append(lacking, rank); cause == "" {
				cause = c
			}
		}
	}
	if !have || lacking == nil {
		return ""
	}
	return fmt.Sprintf("gopgas: %s without an RDMA device (on %s: %s): their data goes by another provider",
		bootstrap.Ranks(lacking), cards[lacking[0]].Site.Name, cause)
}

func allMapped(cards []*teamCard) bool { return all(cards, func(c *teamCard) bool { return c.Mapped }) }

// passed tells users, once, that this rank does not reach another one by the preferred
// provider.
func (j *Job) passed(rank int, err error) {
	j.passedOnce.Do(func() {
		fmt.Fprintf(os.Stderr, "gopgas: rank %d tries the next provider: %v\n", j.fabric.Rank(), err)
	})
}

// reaches describes by which provider this rank reaches which others.
func (j *Job) reaches() string {
	by := map[string][]int{}
	for _, rank := range j.world.members {
		if way := j.fabric.WayTo(rank); rank != j.fabric.Rank() {
			by[way] = append(by[way], rank)
		}
	}
	var parts []string
	for _, name := range j.fabric.Providers() {
		part := name
		if ranks := by[name]; ranks != nil {
			part += " to " + bootstrap.Ranks(ranks)
		}
		parts = append(parts, part)
	}
	for name, cause := range j.fabric.Lacks() {
		parts = append(parts, fmt.Sprintf("no %s (%s)", name, cause))
	}
	return strings.Join(parts, ", ")
}
