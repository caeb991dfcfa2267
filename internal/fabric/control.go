package fabric

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gopgas/gopgas/internal/wait"
)

// call makes a JSON request to another rank.
func (f *Fabric) call(ctx context.Context, rank int, service string, req, rep any) error {
	ctx = wait.Context(ctx)
	payload, err := json.Marshal(req)
	if err != nil {
		return err
	}
	response, err := f.control(ctx, rank, service, payload)
	if err != nil {
		if gone := f.health.of(rank); gone != nil {
			return gone
		}
		return fmt.Errorf("%s with rank %d: %w", service, rank, err)
	}
	return json.Unmarshal(response, rep)
}

// Serve carries out a request of another rank, and returns the response.
func (f *Fabric) Serve(ctx context.Context, from int, service string, payload []byte) ([]byte, error) {
	if err := f.begin(); err != nil {
		return nil, err
	}
	defer f.making.Done()
	switch service {
	case "connect":
		return serve(payload, func(req connectRequest) (connectReply, error) { return f.serveConnect(ctx, from, req) })
	case "disconnect":
		return serve(payload, func(req disconnectRequest) (struct{}, error) {
			f.disconnect(from, req)
			return struct{}{}, nil
		})
	case "sever":
		return serve(payload, func(req severRequest) (struct{}, error) { return struct{}{}, f.sever(ctx, req.Dead) })
	case "region":
		return serve(payload, func(req regionRequest) (regionReply, error) { return f.serveRegion(from, req) })
	case "region-ready":
		return serve(payload, func(m readyMessage) (struct{}, error) { f.regionReady(from, m); return struct{}{}, nil })
	case "leaving":
		return serve(payload, func(struct{}) (leavingReply, error) {
			_, left := f.regions.wanted(everyRegion, from)
			return leavingReply{left}, nil
		})
	case "left":
		return serve(payload, func(m leftMessage) (struct{}, error) { f.regionsLeft(from, m.Names...); return struct{}{}, nil })
	}
	return nil, fmt.Errorf("unknown service %q", service)
}

// serve decodes a request, has handle carry it out, and encodes the response.
func serve[Q, R any](payload []byte, handle func(Q) (R, error)) ([]byte, error) {
	var req Q
	if err := json.Unmarshal(payload, &req); err != nil {
		return nil, err
	}
	rep, err := handle(req)
	if err != nil {
		return nil, err
	}
	return json.Marshal(rep)
}
