package runtime

import (
	"fmt"
	"os"

	"github.com/gopgas/gopgas/internal/bootstrap"
)

// complain prints the error that ends this program, or has grun print it, which
// says the same of many ranks once.
func complain(text string) {
	if !bootstrap.SendFinalError(text) {
		fmt.Fprintln(os.Stderr, text)
	}
}
