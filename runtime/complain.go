package runtime

import (
	"fmt"
	"os"

	"github.com/gopgas/gopgas/internal/bootstrap"
)

// complain prints the error that ends this program. Under grun it makes grun print it,
// which prints the same error of many ranks once.
func complain(text string) {
	if !bootstrap.SendFinalError(text) {
		fmt.Fprintln(os.Stderr, text)
	}
}
