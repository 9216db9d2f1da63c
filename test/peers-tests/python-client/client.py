"""A client in another language, generated from proto/ alone: creates, lists and watches hosts.

Usage: client.py TARGET CA_FILE TOKEN_FILE; prints what it saw as JSON.
"""

import json
import sys

import grpc
from rackwright.v1 import credential_pb2, credential_pb2_grpc
from rackwright.v1 import host_pb2, host_pb2_grpc
from rackwright.v1 import rack_pb2, rack_pb2_grpc

DEADLINE_S = 20


def main():
    target, ca_file, token_file = sys.argv[1:4]
    with open(ca_file, "rb") as file:
        tls = grpc.ssl_channel_credentials(file.read())
    with open(token_file) as file:
        token = grpc.access_token_call_credentials(file.read().strip())
    channel = grpc.secure_channel(target, grpc.composite_channel_credentials(tls, token))
    hosts = host_pb2_grpc.HostServiceStub(channel)
    seen = {}

    rack_pb2_grpc.RackServiceStub(channel).CreateRack(
        rack_pb2.CreateRackRequest(rack_id="r1"), timeout=DEADLINE_S
    )
    credential_pb2_grpc.CredentialServiceStub(channel).CreateCredential(
        credential_pb2.CreateCredentialRequest(
            credential_id="bmc",
            credential=credential_pb2.Credential(username="root", password="calvin"),
        ),
        timeout=DEADLINE_S,
    )
    hosts.CreateHost(request("h1", 1, retired=None), timeout=DEADLINE_S)
    hosts.CreateHost(request("h2", 2, retired=False), timeout=DEADLINE_S)

    listed = hosts.ListHosts(host_pb2.ListHostsRequest(page_size=1), timeout=DEADLINE_S)
    rest = hosts.ListHosts(
        host_pb2.ListHostsRequest(page_size=1, page_token=listed.next_page_token),
        timeout=DEADLINE_S,
    )
    seen["listed"] = [host.name for host in [*listed.hosts, *rest.hosts]]
    seen["presence"] = {
        host.name: {
            "retired": host.spec.HasField("retired"),
            "port": host.spec.bmc.HasField("port"),
            "powered_on": host.status.HasField("powered_on"),
            "agent_connected": host.status.HasField("agent_connected"),
        }
        for host in [*listed.hosts, *rest.hosts]
    }
    seen["watched"] = watch(hosts)
    seen["refused"] = refuse(hosts)
    print(json.dumps(seen))


def request(host_id, number, retired):
    spec = host_pb2.HostSpec(
        rack="racks/r1",
        bmc=host_pb2.BmcEndpoint(address=f"192.0.2.{number}", credential="credentials/bmc"),
        boot_macs=[f"52:54:00:00:00:0{number}"],
    )
    if retired is not None:
        spec.retired = retired
    return host_pb2.CreateHostRequest(host_id=host_id, host=host_pb2.Host(spec=spec))


def watch(hosts):
    """What is there, then a host that appears meanwhile."""
    names = []
    stream = hosts.WatchHosts(host_pb2.WatchHostsRequest(), timeout=DEADLINE_S)
    for event in stream:
        if event.kind == host_pb2.WatchHostsResponse.KIND_SYNCED:
            names.append("synced")
            hosts.CreateHost(request("h3", 3, retired=None), timeout=DEADLINE_S)
        elif event.host.name not in names:
            names.append(event.host.name)
        if "hosts/h3" in names:
            break
    stream.cancel()
    return names


def refuse(hosts):
    """The code of a refusal, and whether its details came along."""
    try:
        hosts.CreateHost(host_pb2.CreateHostRequest(host_id="H"), timeout=DEADLINE_S)
    except grpc.RpcError as error:
        keys = [key for key, _value in error.trailing_metadata()]
        return {"code": error.code().name, "details": "grpc-status-details-bin" in keys}
    return None


main()
