package vector

import "reflect"

// locatedPlain has MinLoc and MaxLoc by the type of the values.
var locatedPlain = table{
	reflect.Int:     {Min: minLoc[int], Max: maxLoc[int]},
	reflect.Int8:    {Min: minLoc[int8], Max: maxLoc[int8]},
	reflect.Int16:   {Min: minLoc[int16], Max: maxLoc[int16]},
	reflect.Int32:   {Min: minLoc[int32], Max: maxLoc[int32]},
	reflect.Int64:   {Min: minLoc[int64], Max: maxLoc[int64]},
	reflect.Uint:    {Min: minLoc[uint], Max: maxLoc[uint]},
	reflect.Uint8:   {Min: minLoc[uint8], Max: maxLoc[uint8]},
	reflect.Uint16:  {Min: minLoc[uint16], Max: maxLoc[uint16]},
	reflect.Uint32:  {Min: minLoc[uint32], Max: maxLoc[uint32]},
	reflect.Uint64:  {Min: minLoc[uint64], Max: maxLoc[uint64]},
	reflect.Uintptr: {Min: minLoc[uintptr], Max: maxLoc[uintptr]},
	reflect.Float32: {Min: minLocFloat[float32], Max: maxLocFloat[float32]},
	reflect.Float64: {Min: minLocFloat[float64], Max: maxLocFloat[float64]},
}
