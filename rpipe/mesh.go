package rpipe

import (
	"context"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
)

// A mesh is a rank's part of pipes from everyone to everyone.
type mesh[T any] struct {
	in  *FanIn[T]
	out []*Writer[T] // by rank
}

// OpenMesh opens this rank's ends of pipes from and to every rank of t: all of them or
// none. Those from other ranks have one name and are read through a FanIn, whose
// positions are ranks; those to other ranks have another name, or the same, and are
// returned by rank. opts are those of all pipes. Kind: local.
func OpenMesh[T any](ctx context.Context, t *runtime.Team, from, to string, opts ...Option) (*FanIn[T], []*Writer[T], error) {
	if t == nil {
		return nil, nil, runtime.ErrTeam
	}
	opts = opts[:len(opts):len(opts)]
	m, err := openMeshes[T](wait.Context(ctx), t, meshOptions{append(opts, WithName(from)), append(opts, WithName(to))})
	if err != nil {
		return nil, nil, err
	}
	return m[0].in, m[0].out, nil
}

// meshOptions are the options of a mesh's pipes from other ranks and to them.
type meshOptions struct{ in, out []Option }

// openMeshes opens one mesh for each of the options: all of them or none.
func openMeshes[T any](ctx context.Context, t *runtime.Team, pipes ...meshOptions) (_ []mesh[T], err error) {
	var o pipe.Opening
	meshes := make([]mesh[T], len(pipes))
	defer func() {
		for i := range meshes {
			if m := &meshes[i]; err != nil && m.in != nil {
				m.in.in.tally.Drop(false)
			}
		}
	}()
	for i, opts := range pipes {
		if err := meshes[i].add(ctx, &o, t, opts); err != nil {
			return nil, err
		}
	}
	if err := o.Open(ctx); err != nil {
		return nil, err
	}
	for i := range meshes {
		meshes[i].in.opened()
	}
	return meshes, nil
}

// add gathers the mesh's ends.
func (m *mesh[T]) add(ctx context.Context, o *pipe.Opening, t *runtime.Team, opts meshOptions) (err error) {
	everyone := make([]int, t.Size())
	for i := range everyone {
		everyone[i] = i
	}
	if m.in, err = addFanIn[T](ctx, o, t, everyone, opts.in); err != nil {
		return err
	}
	m.out, err = addWriters[T](ctx, o, t, everyone, opts.out)
	return err
}
