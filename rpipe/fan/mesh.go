package fan

import (
	"context"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
)

// A Mesh holds this rank's ends of pipes from and to every rank of a team, this one
// included. The positions of In are ranks. The ends are closed one by one.
type Mesh[T any] struct {
	In  *In[T]
	Out []*rpipe.Writer[T] // by rank
}

// Names are the names of a mesh's pipes: From of the pipes that In reads, To of those in
// Out. They may be the same. From at one rank is To at the others.
type Names struct{ From, To string }

// OpenMesh opens this rank's ends of the pipes of a mesh, all of them or none, with opts
// for each pipe. Errors are those of OpenIn. Kind: local; the ends connect on first use.
func OpenMesh[T any](ctx context.Context, t *runtime.Team, names Names, opts ...rpipe.Option) (Mesh[T], error) {
	m, err := OpenMeshes[T](ctx, t, []Names{names}, opts...)
	if err != nil {
		return Mesh[T]{}, err
	}
	return m[0], nil
}

// OpenMeshes opens a mesh for each of names, the ends of all meshes or none. Else as
// OpenMesh. Kind: local.
func OpenMeshes[T any](ctx context.Context, t *runtime.Team, names []Names, opts ...rpipe.Option) (_ []Mesh[T], err error) {
	if t == nil {
		return nil, runtime.ErrTeam
	}
	ctx = wait.Context(ctx)
	var o pipe.Opening
	meshes := make([]Mesh[T], len(names))
	defer func() {
		for i := range meshes {
			if m := &meshes[i]; err != nil && m.In != nil {
				m.In.in.summary.GiveUp()
			}
		}
	}()
	for i := range meshes {
		if err := meshes[i].gather(ctx, &o, t, names[i], opts); err != nil {
			return nil, err
		}
	}
	if err := o.Open(ctx); err != nil {
		return nil, err
	}
	return meshes, nil
}

// gather makes the mesh, and adds its ends to o.
func (m *Mesh[T]) gather(ctx context.Context, o *pipe.Opening, t *runtime.Team, names Names, opts []rpipe.Option) (err error) {
	all := make([]int, t.Size())
	for i := range all {
		all[i] = i
	}
	opts = opts[:len(opts):len(opts)]
	if m.In, err = gatherIn[T](ctx, o, t, all, append(opts, rpipe.WithName(names.From))); err != nil {
		return err
	}
	for _, reader := range all {
		m.Out = append(m.Out, (*rpipe.Writer[T])(pipe.AddWriter[T](o, t, reader, append(opts, rpipe.WithName(names.To)))))
	}
	return nil
}
