"""Lists hosts, watches them, asks for a clean, and reads why a request was refused.

Usage: python3 example.py HOST:PORT CA_FILE TOKEN_FILE; prints what it saw as JSON.
"""

import json
import sys

import grpc
from rackwright.v1 import host_pb2, host_pb2_grpc
from third_party.google.rpc import error_details_pb2, status_pb2

DEADLINE_S = 30


def connect(target, ca_file, token_file):
    with open(ca_file, "rb") as file:
        tls = grpc.ssl_channel_credentials(file.read())
    with open(token_file) as file:
        token = grpc.access_token_call_credentials(file.read().strip())
    return grpc.secure_channel(target, grpc.composite_channel_credentials(tls, token))


def list_all(hosts):
    """Page by page: a fleet is larger than an answer."""
    names = []
    page_token = ""
    while True:
        request = host_pb2.ListHostsRequest(page_size=1, page_token=page_token)
        page = hosts.ListHosts(request, timeout=DEADLINE_S)
        names += [host.name for host in page.hosts]
        page_token = page.next_page_token
        if not page_token:
            return names


def watch_present(hosts):
    """What is there, up to the mark that says so; what changes comes behind it."""
    names = []
    stream = hosts.WatchHosts(host_pb2.WatchHostsRequest(), timeout=DEADLINE_S)
    for event in stream:
        if event.kind == host_pb2.WatchHostsResponse.KIND_SYNCED:
            break
        names.append(event.host.name)
    stream.cancel()
    return names


def refusal_of(call):
    """A program decides by code and reason; the message is for people."""
    try:
        call()
    except grpc.RpcError as error:
        trailer = dict(error.trailing_metadata())
        status = status_pb2.Status.FromString(trailer["grpc-status-details-bin"])
        info = error_details_pb2.ErrorInfo()
        bad = error_details_pb2.BadRequest()
        for detail in status.details:
            detail.Unpack(info)
            detail.Unpack(bad)
        fields = [violation.field for violation in bad.field_violations]
        return {"code": error.code().name, "reason": info.reason, "fields": fields}
    return None


def main():
    hosts = host_pb2_grpc.HostServiceStub(connect(*sys.argv[1:4]))
    listed = list_all(hosts)
    # The same id again asks for the same clean, not for a second one: safe to repeat.
    clean = host_pb2.CleanHostRequest(
        name=listed[0], request_id="example-1", reason="an example"
    )
    watched = watch_present(hosts)
    cleaned = hosts.CleanHost(clean, timeout=DEADLINE_S)
    wrong = host_pb2.CreateHostRequest(
        host_id="H", host=host_pb2.Host(spec=host_pb2.HostSpec())
    )
    refused = refusal_of(lambda: hosts.CreateHost(wrong, timeout=DEADLINE_S))
    seen = {
        "listed": listed,
        "watched": watched,
        "cleaning": cleaned.status.HasField("run"),
        "refused": refused,
    }
    print(json.dumps(seen))


main()
