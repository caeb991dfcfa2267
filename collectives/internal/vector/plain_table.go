package vector

import "reflect"

// plain holds every operation of every type; it is never changed.
var plain = table{
	reflect.Int:        {sum[int], prod[int], minimum[int], maximum[int], and[int], or[int], xor[int]},
	reflect.Int8:       {sum[int8], prod[int8], minimum[int8], maximum[int8], and[int8], or[int8], xor[int8]},
	reflect.Int16:      {sum[int16], prod[int16], minimum[int16], maximum[int16], and[int16], or[int16], xor[int16]},
	reflect.Int32:      {sum[int32], prod[int32], minimum[int32], maximum[int32], and[int32], or[int32], xor[int32]},
	reflect.Int64:      {sum[int64], prod[int64], minimum[int64], maximum[int64], and[int64], or[int64], xor[int64]},
	reflect.Uint:       {sum[uint], prod[uint], minimum[uint], maximum[uint], and[uint], or[uint], xor[uint]},
	reflect.Uint8:      {sum[uint8], prod[uint8], minimum[uint8], maximum[uint8], and[uint8], or[uint8], xor[uint8]},
	reflect.Uint16:     {sum[uint16], prod[uint16], minimum[uint16], maximum[uint16], and[uint16], or[uint16], xor[uint16]},
	reflect.Uint32:     {sum[uint32], prod[uint32], minimum[uint32], maximum[uint32], and[uint32], or[uint32], xor[uint32]},
	reflect.Uint64:     {sum[uint64], prod[uint64], minimum[uint64], maximum[uint64], and[uint64], or[uint64], xor[uint64]},
	reflect.Uintptr:    {sum[uintptr], prod[uintptr], minimum[uintptr], maximum[uintptr], and[uintptr], or[uintptr], xor[uintptr]},
	reflect.Float32:    {sum[float32], prod[float32], minimum[float32], maximum[float32]},
	reflect.Float64:    {sum[float64], prod[float64], minimum[float64], maximum[float64]},
	reflect.Complex64:  {sum[complex64], prodComplex64},
	reflect.Complex128: {sum[complex128], prodComplex128},
}
