// Lists hosts, watches them, asks for a clean, and reads why a request was refused.
//
// Usage: Example HOST:PORT CA_FILE TOKEN_FILE; prints what it saw as JSON.

import com.google.gson.GsonBuilder;
import com.google.protobuf.Any;
import google.rpc.ErrorDetails.BadRequest;
import google.rpc.ErrorDetails.ErrorInfo;
import google.rpc.StatusOuterClass.Status;
import io.grpc.Context;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.GrpcSslContexts;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.MetadataUtils;
import io.netty.handler.ssl.SslContext;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import rackwright.v1.HostOuterClass.CleanHostRequest;
import rackwright.v1.HostOuterClass.CreateHostRequest;
import rackwright.v1.HostOuterClass.Host;
import rackwright.v1.HostOuterClass.HostSpec;
import rackwright.v1.HostOuterClass.ListHostsRequest;
import rackwright.v1.HostOuterClass.ListHostsResponse;
import rackwright.v1.HostOuterClass.WatchHostsRequest;
import rackwright.v1.HostOuterClass.WatchHostsResponse;
import rackwright.v1.HostServiceGrpc;
import rackwright.v1.HostServiceGrpc.HostServiceBlockingStub;

public final class Example {
  private static final long DEADLINE_SECONDS = 30;
  private static final Metadata.Key<String> AUTHORIZATION =
      Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);
  private static final Metadata.Key<byte[]> DETAILS =
      Metadata.Key.of("grpc-status-details-bin", Metadata.BINARY_BYTE_MARSHALLER);

  public static void main(String[] args) throws Exception {
    if (args.length != 3) {
      System.err.println("usage: Example HOST:PORT CA_FILE TOKEN_FILE");
      System.exit(2);
    }
    // The only roots: the public ones say nothing of a control plane. It speaks TLS 1.3 alone,
    // which older versions of netty offer only when they are told to.
    SslContext tls =
        GrpcSslContexts.forClient()
            .protocols("TLSv1.3")
            .trustManager(new File(args[1]))
            .build();
    ManagedChannel channel = NettyChannelBuilder.forTarget(args[0]).sslContext(tls).build();
    try {
      Metadata bearer = new Metadata();
      bearer.put(AUTHORIZATION, "Bearer " + Files.readString(Path.of(args[2])).strip());
      HostServiceBlockingStub hosts =
          MetadataUtils.attachHeaders(HostServiceGrpc.newBlockingStub(channel), bearer);
      System.out.println(new GsonBuilder().serializeNulls().create().toJson(look(hosts)));
    } finally {
      channel.shutdownNow();
    }
  }

  private static Map<String, Object> look(HostServiceBlockingStub hosts) throws IOException {
    Map<String, Object> seen = new LinkedHashMap<>();
    List<String> listed = listAll(hosts);
    seen.put("listed", listed);
    seen.put("watched", watchPresent(hosts));
    // The same id again asks for the same clean, not for a second one: safe to repeat.
    CleanHostRequest clean =
        CleanHostRequest.newBuilder()
            .setName(listed.get(0))
            .setRequestId("example-1")
            .setReason("an example")
            .build();
    seen.put("cleaning", within(hosts).cleanHost(clean).getStatus().hasRun());
    seen.put("refused", refusalOf(hosts));
    return seen;
  }

  private static HostServiceBlockingStub within(HostServiceBlockingStub hosts) {
    return hosts.withDeadlineAfter(DEADLINE_SECONDS, TimeUnit.SECONDS);
  }

  /** Page by page: a fleet is larger than an answer. */
  private static List<String> listAll(HostServiceBlockingStub hosts) {
    List<String> names = new ArrayList<>();
    String pageToken = "";
    do {
      ListHostsRequest request =
          ListHostsRequest.newBuilder().setPageSize(1).setPageToken(pageToken).build();
      ListHostsResponse page = within(hosts).listHosts(request);
      page.getHostsList().forEach(host -> names.add(host.getName()));
      pageToken = page.getNextPageToken();
    } while (!pageToken.isEmpty());
    return names;
  }

  /** What is there, up to the mark that says so; what changes comes behind it. */
  private static List<String> watchPresent(HostServiceBlockingStub hosts) {
    List<String> names = new ArrayList<>();
    Context.CancellableContext watching = Context.current().withCancellation();
    watching.run(
        () -> {
          Iterator<WatchHostsResponse> events =
              within(hosts).watchHosts(WatchHostsRequest.getDefaultInstance());
          while (events.hasNext()) {
            WatchHostsResponse event = events.next();
            if (event.getKind() == WatchHostsResponse.Kind.KIND_SYNCED) {
              break;
            }
            names.add(event.getHost().getName());
          }
        });
    watching.cancel(null);
    return names;
  }

  /** A program decides by code and reason; the message is for people. */
  private static Map<String, Object> refusalOf(HostServiceBlockingStub hosts) throws IOException {
    CreateHostRequest wrong =
        CreateHostRequest.newBuilder()
            .setHostId("H")
            .setHost(Host.newBuilder().setSpec(HostSpec.getDefaultInstance()))
            .build();
    try {
      within(hosts).createHost(wrong);
      return null;
    } catch (StatusRuntimeException error) {
      Map<String, Object> refused = new LinkedHashMap<>();
      refused.put("code", error.getStatus().getCode().name());
      List<String> fields = new ArrayList<>();
      for (Any detail :
          Status.parseFrom(error.getTrailers().get(DETAILS)).getDetailsList()) {
        if (detail.is(ErrorInfo.class)) {
          refused.put("reason", detail.unpack(ErrorInfo.class).getReason());
        }
        if (detail.is(BadRequest.class)) {
          BadRequest bad = detail.unpack(BadRequest.class);
          bad.getFieldViolationsList().forEach(each -> fields.add(each.getField()));
        }
      }
      refused.put("fields", fields);
      return refused;
    }
  }

  private Example() {}
}
