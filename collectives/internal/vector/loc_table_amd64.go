package vector

import "reflect"

// locatedAssembly holds MinLoc and MaxLoc in AVX2; it is never changed.
var locatedAssembly = table{
	reflect.Int:     {Min: avxMinLocInt64, Max: avxMaxLocInt64},
	reflect.Int8:    {Min: avxMinLocInt8, Max: avxMaxLocInt8},
	reflect.Int16:   {Min: avxMinLocInt16, Max: avxMaxLocInt16},
	reflect.Int32:   {Min: avxMinLocInt32, Max: avxMaxLocInt32},
	reflect.Int64:   {Min: avxMinLocInt64, Max: avxMaxLocInt64},
	reflect.Uint:    {Min: avxMinLocUint64, Max: avxMaxLocUint64},
	reflect.Uint8:   {Min: avxMinLocUint8, Max: avxMaxLocUint8},
	reflect.Uint16:  {Min: avxMinLocUint16, Max: avxMaxLocUint16},
	reflect.Uint32:  {Min: avxMinLocUint32, Max: avxMaxLocUint32},
	reflect.Uint64:  {Min: avxMinLocUint64, Max: avxMaxLocUint64},
	reflect.Uintptr: {Min: avxMinLocUint64, Max: avxMaxLocUint64},
	reflect.Float32: {Min: avxMinLocFloat32, Max: avxMaxLocFloat32},
	reflect.Float64: {Min: avxMinLocFloat64, Max: avxMaxLocFloat64},
}

//go:noescape
func avxMinLocInt8(dst, left, right []byte)

//go:noescape
func avxMinLocInt16(dst, left, right []byte)

//go:noescape
func avxMinLocInt32(dst, left, right []byte)

//go:noescape
func avxMinLocInt64(dst, left, right []byte)

//go:noescape
func avxMinLocUint8(dst, left, right []byte)

//go:noescape
func avxMinLocUint16(dst, left, right []byte)

//go:noescape
func avxMinLocUint32(dst, left, right []byte)

//go:noescape
func avxMinLocUint64(dst, left, right []byte)

//go:noescape
func avxMinLocFloat32(dst, left, right []byte)

//go:noescape
func avxMinLocFloat64(dst, left, right []byte)

//go:noescape
func avxMaxLocInt8(dst, left, right []byte)

//go:noescape
func avxMaxLocInt16(dst, left, right []byte)

//go:noescape
func avxMaxLocInt32(dst, left, right []byte)

//go:noescape
func avxMaxLocInt64(dst, left, right []byte)

//go:noescape
func avxMaxLocUint8(dst, left, right []byte)

//go:noescape
func avxMaxLocUint16(dst, left, right []byte)

//go:noescape
func avxMaxLocUint32(dst, left, right []byte)

//go:noescape
func avxMaxLocUint64(dst, left, right []byte)

//go:noescape
func avxMaxLocFloat32(dst, left, right []byte)

//go:noescape
func avxMaxLocFloat64(dst, left, right []byte)
