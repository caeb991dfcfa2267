package fabric

import "context"

// StartWrite is Start of src, lent.
func (r *Remote) StartWrite(ctx context.Context, offset int, src []byte) (Request, error) {
	return r.StartWriteBy(ctx, Auto, offset, src)
}

// StartWriteBy is StartWrite by a path of the caller's choice.
func (r *Remote) StartWriteBy(ctx context.Context, path Path, offset int, src []byte) (Request, error) {
	return r.Start(ctx, &Put{Body: Part{At: offset, Mem: src, Path: path}, Lent: true})
}

// WriteFlag is Put of src and a flag.
func (r *Remote) WriteFlag(ctx context.Context, offset int, src []byte, flag Flag) error {
	return r.Put(ctx, &Put{Body: Part{At: offset, Mem: src}, Tell: TellByFlag, Flag: flag})
}

// WriteFlagCopied is Put of two inline parts and a flag.
func (r *Remote) WriteFlagCopied(ctx context.Context, offset int, head, body []byte, flag Flag) error {
	return r.Put(ctx, &Put{Head: Part{At: offset, Mem: head, Path: Inline}, Body: Part{At: offset + len(head), Mem: body, Path: Inline},
		Tell: TellByFlag, Flag: flag})
}

// A Source is N bytes at Offset of a region.
type Source struct {
	Region    *Region
	Offset, N int
	Path      Path
}

func (s *Source) part(at int) Part {
	return Part{At: at, Mem: s.Region.mem.Bytes[s.Offset:][:s.N], Path: s.Path}
}

// WriteFlagFrom is Put of memory that stays, and a flag.
func (r *Remote) WriteFlagFrom(ctx context.Context, offset int, src Source, flag Flag) error {
	return r.Put(ctx, &Put{Body: src.part(offset), Region: src.Region, Tell: TellByFlag, Flag: flag})
}

// WriteFrom is WriteFlagFrom without its flag.
func (r *Remote) WriteFrom(ctx context.Context, offset int, src Source) error {
	return r.Put(ctx, &Put{Body: src.part(offset), Region: src.Region})
}

// WriteWhole is Put of mem, whose last word tells.
func (r *Remote) WriteWhole(ctx context.Context, offset int, mem []byte) error {
	return r.Put(ctx, &Put{Body: Part{At: offset, Mem: mem}, Tell: TellByLastWord})
}

// WriteWholeBehind is WriteWhole of mem behind body.
func (r *Remote) WriteWholeBehind(ctx context.Context, bodyOffset int, body []byte, offset int, mem []byte) error {
	return r.Put(ctx, &Put{Head: Part{At: bodyOffset, Mem: body, Path: Inline}, Body: Part{At: offset, Mem: mem}, Tell: TellByLastWord})
}

// StartLand is Start of Land.
func (r *Remote) StartLand(ctx context.Context, at Address, src []byte, flag Flag, alone bool) (Request, error) {
	p := r.Land(at, src, flag, alone)
	return r.Start(ctx, &p)
}
