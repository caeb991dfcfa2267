package element

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

type inner struct {
	A int8
	_ [3]bool
}

func TestDescribeSpellsTheStructureAndNotTheNames(t *testing.T) {
	spelled, err := Describe[struct {
		X int64
		Y [2]inner
	}]()
	require.NoError(t, err)
	require.Equal(t, "struct{0:int64,8:[2]struct{0:int8,1:[3]bool}}", spelled)
	type renamed struct {
		Other  int64
		Fields [2]inner
	}
	again, err := Describe[renamed]()
	require.NoError(t, err)
	require.Equal(t, spelled, again)
}

func TestDescribeRefusesTypesThatMeanNothingAtOtherRanks(t *testing.T) {
	for _, describe := range []func() (string, error){
		Describe[string], Describe[[]byte], Describe[*int], Describe[any], Describe[func()], Describe[chan int],
		Describe[map[int]int], Describe[struct{ s []int }], Describe[[2]struct{ p *int }], Describe[struct{}], Describe[[0]int],
	} {
		_, err := describe()
		require.ErrorIs(t, err, ErrType)
	}
}

func TestViewsAreTheSameMemory(t *testing.T) {
	mem := make([]byte, 24)
	values := View[int64](mem, 3)
	values[1] = -1
	require.Equal(t, byte(255), mem[8])
	require.Same(t, &mem[0], &Bytes(values)[0])
	require.Len(t, Bytes(values), 24)
	require.Equal(t, 8, Size[int64]())
	require.Empty(t, Bytes[int64](nil))
}

func TestSameComparesTypes(t *testing.T) {
	type named int
	types := []reflect.Type{reflect.TypeFor[int](), reflect.TypeFor[named](), reflect.TypeFor[[4]int](), reflect.TypeFor[struct{ A int }](), reflect.TypeFor[error]()}
	for i, x := range types {
		for j, y := range types {
			require.Equal(t, i == j, Same(x, y), "%v, %v", x, y)
		}
		require.True(t, Same(x, reflect.New(x).Type().Elem()))
	}
}
