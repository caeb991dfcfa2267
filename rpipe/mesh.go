package rpipe

import (
	"context"

	"github.com/gopgas/gopgas/runtime"
)

// A mesh is a rank's part of pipes from everyone to everyone.
type mesh[T any] struct {
	in  *FanIn[T]
	out []*Writer[T] // by rank
}

// openMeshes opens one mesh for each list of options: all of them or none.
func openMeshes[T any](ctx context.Context, t *runtime.Team, pipes ...[]Option) (_ []mesh[T], err error) {
	var o opening
	meshes := make([]mesh[T], len(pipes))
	defer func() {
		for i := range meshes {
			if m := &meshes[i]; err != nil && m.in != nil {
				m.in.in.tally.drop(false)
			}
		}
	}()
	for i, opts := range pipes {
		if err := meshes[i].add(ctx, &o, t, opts); err != nil {
			return nil, err
		}
	}
	if err := o.open(ctx); err != nil {
		return nil, err
	}
	for i := range meshes {
		meshes[i].in.opened()
	}
	return meshes, nil
}

// add gathers the mesh's ends.
func (m *mesh[T]) add(ctx context.Context, o *opening, t *runtime.Team, opts []Option) (err error) {
	everyone := make([]int, t.Size())
	for i := range everyone {
		everyone[i] = i
	}
	if m.in, err = addFanIn[T](ctx, o, t, everyone, opts); err != nil {
		return err
	}
	m.out, err = addWriters[T](ctx, o, t, everyone, opts)
	return err
}
