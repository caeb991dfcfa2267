// Package element checks the types that ranks can share: values of a fixed size
// without pointers, which mean the same in every rank's memory.
package element

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// ErrType: the type holds pointers or has no size.
var ErrType = errors.New("unusable element type")

// Describe checks that memory of type T means the same at every rank and returns
// its structure as text. Ranks of different programs compare their types by that
// text.
func Describe[T any]() (string, error) { return DescribeType(reflect.TypeFor[T]()) }

// DescribeType is Describe for a reflect.Type.
func DescribeType(t reflect.Type) (string, error) {
	if t.Size() == 0 {
		return "", fmt.Errorf("%w: %v has no size", ErrType, t)
	}
	return spell(t, t)
}

// spell describes part, which is whole or lies in it.
func spell(whole, part reflect.Type) (string, error) {
	switch part.Kind() {
	case reflect.Array:
		elem, err := spell(whole, part.Elem())
		return fmt.Sprintf("[%d]%s", part.Len(), elem), err
	case reflect.Struct:
		fields := make([]string, part.NumField())
		for i := range fields {
			f := part.Field(i)
			s, err := spell(whole, f.Type)
			if err != nil {
				return "", err
			}
			fields[i] = fmt.Sprintf("%d:%s", f.Offset, s)
		}
		return "struct{" + strings.Join(fields, ",") + "}", nil
	case reflect.Bool, reflect.Complex64, reflect.Complex128, reflect.Float32, reflect.Float64, reflect.Uintptr,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return part.Kind().String(), nil
	}
	return "", fmt.Errorf("%w: %v holds a %v, which means nothing at another rank; use fixed-size values such as [16]byte or int64",
		ErrType, whole, part)
}
