package vector

import "reflect"

// assembly holds the operations in AVX2; it is never changed. Each function is a
// Combine, made of KERNEL in loop_amd64.h.
var assembly = table{
	reflect.Int:        {avxSum64, avxProd64, avxMinInt64, avxMaxInt64, avxAnd, avxOr, avxXor},
	reflect.Int8:       {avxSum8, avxProd8, avxMinInt8, avxMaxInt8, avxAnd, avxOr, avxXor},
	reflect.Int16:      {avxSum16, avxProd16, avxMinInt16, avxMaxInt16, avxAnd, avxOr, avxXor},
	reflect.Int32:      {avxSum32, avxProd32, avxMinInt32, avxMaxInt32, avxAnd, avxOr, avxXor},
	reflect.Int64:      {avxSum64, avxProd64, avxMinInt64, avxMaxInt64, avxAnd, avxOr, avxXor},
	reflect.Uint:       {avxSum64, avxProd64, avxMinUint64, avxMaxUint64, avxAnd, avxOr, avxXor},
	reflect.Uint8:      {avxSum8, avxProd8, avxMinUint8, avxMaxUint8, avxAnd, avxOr, avxXor},
	reflect.Uint16:     {avxSum16, avxProd16, avxMinUint16, avxMaxUint16, avxAnd, avxOr, avxXor},
	reflect.Uint32:     {avxSum32, avxProd32, avxMinUint32, avxMaxUint32, avxAnd, avxOr, avxXor},
	reflect.Uint64:     {avxSum64, avxProd64, avxMinUint64, avxMaxUint64, avxAnd, avxOr, avxXor},
	reflect.Uintptr:    {avxSum64, avxProd64, avxMinUint64, avxMaxUint64, avxAnd, avxOr, avxXor},
	reflect.Float32:    {avxSumFloat32, avxProdFloat32, avxMinFloat32, avxMaxFloat32},
	reflect.Float64:    {avxSumFloat64, avxProdFloat64, avxMinFloat64, avxMaxFloat64},
	reflect.Complex64:  {avxSumFloat32, avxProdComplex64},
	reflect.Complex128: {avxSumFloat64, avxProdComplex128},
}

//go:noescape
func avxSum8(dst, left, right []byte)

//go:noescape
func avxSum16(dst, left, right []byte)

//go:noescape
func avxSum32(dst, left, right []byte)

//go:noescape
func avxSum64(dst, left, right []byte)

//go:noescape
func avxSumFloat32(dst, left, right []byte)

//go:noescape
func avxSumFloat64(dst, left, right []byte)

//go:noescape
func avxProd8(dst, left, right []byte)

//go:noescape
func avxProd16(dst, left, right []byte)

//go:noescape
func avxProd32(dst, left, right []byte)

//go:noescape
func avxProd64(dst, left, right []byte)

//go:noescape
func avxProdFloat32(dst, left, right []byte)

//go:noescape
func avxProdFloat64(dst, left, right []byte)

//go:noescape
func avxProdComplex64(dst, left, right []byte)

//go:noescape
func avxProdComplex128(dst, left, right []byte)

//go:noescape
func avxMinInt8(dst, left, right []byte)

//go:noescape
func avxMinInt16(dst, left, right []byte)

//go:noescape
func avxMinInt32(dst, left, right []byte)

//go:noescape
func avxMinInt64(dst, left, right []byte)

//go:noescape
func avxMinUint8(dst, left, right []byte)

//go:noescape
func avxMinUint16(dst, left, right []byte)

//go:noescape
func avxMinUint32(dst, left, right []byte)

//go:noescape
func avxMinUint64(dst, left, right []byte)

//go:noescape
func avxMinFloat32(dst, left, right []byte)

//go:noescape
func avxMinFloat64(dst, left, right []byte)

//go:noescape
func avxMaxInt8(dst, left, right []byte)

//go:noescape
func avxMaxInt16(dst, left, right []byte)

//go:noescape
func avxMaxInt32(dst, left, right []byte)

//go:noescape
func avxMaxInt64(dst, left, right []byte)

//go:noescape
func avxMaxUint8(dst, left, right []byte)

//go:noescape
func avxMaxUint16(dst, left, right []byte)

//go:noescape
func avxMaxUint32(dst, left, right []byte)

//go:noescape
func avxMaxUint64(dst, left, right []byte)

//go:noescape
func avxMaxFloat32(dst, left, right []byte)

//go:noescape
func avxMaxFloat64(dst, left, right []byte)

//go:noescape
func avxAnd(dst, left, right []byte)

//go:noescape
func avxOr(dst, left, right []byte)

//go:noescape
func avxXor(dst, left, right []byte)
