// Lists hosts, watches them, asks for a clean, and reads why a request was refused.
//
// Usage: example HOST:PORT CA_FILE TOKEN_FILE; prints what it saw as JSON.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	rackwright "rackwright/v1"
)

const deadline = 30 * time.Second

type refusal struct {
	Code   string   `json:"code"`
	Reason string   `json:"reason"`
	Fields []string `json:"fields"`
}

type seen struct {
	Listed   []string `json:"listed"`
	Watched  []string `json:"watched"`
	Cleaning bool     `json:"cleaning"`
	Refused  *refusal `json:"refused"`
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: example HOST:PORT CA_FILE TOKEN_FILE")
	}
	found, err := look(os.Args[1], os.Args[2], os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		log.Fatal(err)
	}
}

func look(target, caFile, tokenFile string) (*seen, error) {
	// The only roots: the public ones say nothing of a control plane.
	tls, err := credentials.NewClientTLSFromFile(caFile, "")
	if err != nil {
		return nil, err
	}
	connection, err := grpc.Dial(target, grpc.WithTransportCredentials(tls))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	bearer := "Bearer " + strings.TrimSpace(string(token))
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", bearer)
	hosts := rackwright.NewHostServiceClient(connection)

	found := &seen{}
	if found.Listed, err = listAll(ctx, hosts); err != nil {
		return nil, err
	}
	if found.Watched, err = watchPresent(ctx, hosts); err != nil {
		return nil, err
	}
	// The same id again asks for the same clean, not for a second one: safe to repeat.
	clean := &rackwright.CleanHostRequest{
		Name:      found.Listed[0],
		RequestId: "example-1",
		Reason:    "an example",
	}
	cleaned, err := hosts.CleanHost(ctx, clean)
	if err != nil {
		return nil, err
	}
	found.Cleaning = cleaned.GetStatus().GetRun() != nil
	wrong := &rackwright.CreateHostRequest{
		HostId: "H",
		Host:   &rackwright.Host{Spec: &rackwright.HostSpec{}},
	}
	_, err = hosts.CreateHost(ctx, wrong)
	found.Refused = refusalOf(err)
	return found, nil
}

// Page by page: a fleet is larger than an answer.
func listAll(ctx context.Context, hosts rackwright.HostServiceClient) ([]string, error) {
	names := []string{}
	for pageToken := ""; ; {
		size := uint32(1)
		request := &rackwright.ListHostsRequest{PageSize: &size, PageToken: pageToken}
		page, err := hosts.ListHosts(ctx, request)
		if err != nil {
			return nil, err
		}
		for _, host := range page.Hosts {
			names = append(names, host.Name)
		}
		if pageToken = page.NextPageToken; pageToken == "" {
			return names, nil
		}
	}
}

// What is there, up to the mark that says so; what changes comes behind it.
func watchPresent(ctx context.Context, hosts rackwright.HostServiceClient) ([]string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := hosts.WatchHosts(ctx, &rackwright.WatchHostsRequest{})
	if err != nil {
		return nil, err
	}
	names := []string{}
	for {
		event, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		if event.Kind == rackwright.WatchHostsResponse_KIND_SYNCED {
			return names, nil
		}
		names = append(names, event.GetHost().GetName())
	}
}

// A program decides by code and reason; the message is for people.
func refusalOf(err error) *refusal {
	if err == nil {
		return nil
	}
	said := status.Convert(err)
	refused := &refusal{Code: said.Code().String()}
	for _, detail := range said.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			refused.Reason = detail.Reason
		case *errdetails.BadRequest:
			for _, violation := range detail.FieldViolations {
				refused.Fields = append(refused.Fields, violation.Field)
			}
		}
	}
	return refused
}
