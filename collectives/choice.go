package collectives

import "github.com/gopgas/gopgas/runtime"

// Algorithms returns the names of the algorithms by which a team can do a call.
// [WithAlgorithm] takes them. There are none if the team cannot do the call. For a nil
// team Algorithms returns all names for the collective. Kind: local.
func (c Call) Algorithms(t *runtime.Team) []string {
	if t == nil && c.of != nil {
		return namesOf(c.of.family)
	}
	c.algorithm = ""
	g, _, err := admit(t, &c)
	if err != nil {
		return nil
	}
	return c.usable(g.selector.topology, g.selector.hasBoard(&c, g.team))
}

// Choice returns the name of the algorithm by which a team does a call. Kind: local.
func (c Call) Choice(t *runtime.Team) (string, error) {
	g, _, err := admit(t, &c)
	if err != nil {
		return "", err
	}
	board := g.selector.hasBoard(&c, g.team)
	if c.algorithm != "" {
		w, err := g.selector.ways.named(&c, g.selector.topology, board)
		if err != nil {
			return "", err
		}
		return w.Name, nil
	}
	return g.selector.ways.best(&c, g.selector.topology, board).Name, nil
}
