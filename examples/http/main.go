// Http has rank 0 serve net/http over pipes. Every rank, rank 0 as well, asks it
// for a greeting.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/gopgas/gopgas/rpipe/netpipe"
	"github.com/gopgas/gopgas/runtime"
)

func main() { runtime.Main(greet) }

// greet has rank 0 serve HTTP over pipes, and each rank fetch its greeting.
func greet(ctx context.Context, job *runtime.Job) error {
	world := job.World()
	if world.Rank() == 0 {
		stop, err := serve(ctx, world)
		if err != nil {
			return err
		}
		defer stop()
	}
	got, err := fetch(ctx, world, fmt.Sprintf("http://rank0/greeting?n=%d", world.Size()))
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("hello %v, one of %d", netpipe.RankAddr{Team: "world", Rank: world.Rank()}, world.Size()); got != want {
		return fmt.Errorf("got %q, want %q", got, want)
	}
	fmt.Printf("rank %d of %d: %s\n", world.Rank(), world.Size(), got)
	return world.Barrier(ctx) // all ranks have their greetings
}

// serve serves greetings until stop.
func serve(ctx context.Context, world *runtime.Team) (stop func(), err error) {
	l, err := netpipe.Listen(ctx, world)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /greeting", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s, one of %s", r.RemoteAddr, r.FormValue("n"))
	})
	server, served := &http.Server{Handler: mux}, make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	return func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			fmt.Println(err)
		}
	}, nil
}

// fetch gets a page from rank 0, for any host in the URL.
func fetch(ctx context.Context, world *runtime.Team, url string) (string, error) {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return netpipe.Dial(ctx, world, 0)
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}
