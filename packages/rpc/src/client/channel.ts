/**
 * A connection to one server, TLS only, and the clients that share it.
 *
 * Invariants:
 * 1. The server is trusted only with a chain to `caPem`, never to the public CAs, and only under
 *    the requested name.
 * 2. No call is repeated without the caller's consent: grpc-js's retries are off. On request, calls
 *    that only read are repeated (`repeats.ts`).
 */
import { isIP } from 'node:net';
import { checkServerIdentity } from 'node:tls';
import '../wire/quiet.ts';
import { type ChannelOptions, credentials, Client as GrpcClient } from '@grpc/grpc-js';
import { defaultRpcLimits, type RpcLimits } from '../wire/limits.ts';
import type { KeyAndChain } from '../wire/tls.ts';

export interface ConnectOptions {
  /** "host:port", "1.2.3.4:port" or "[::1]:port" */
  readonly target: string;
  /** The only roots, PEM (invariant 1). */
  readonly caPem: string;
  /** Our own certificate, for servers that require one. */
  readonly own?: KeyAndChain;
  /** Name that the server's certificate must carry instead of the target's host. */
  readonly serverName?: string;
  readonly limits?: Partial<RpcLimits>;
  /** First and longest pause between attempts to connect, milliseconds. */
  readonly reconnectAfterMs?: { readonly first: number; readonly longest: number };
}

/** An open channel; connects on the first call. */
export interface Channel {
  /** For the adapter only. */
  readonly grpc: GrpcClient;
  close(): void;
}

const defaultReconnectAfterMs = { first: 500, longest: 5_000 };

/** SNI value for targets that are addresses: RFC 6066 allows only names there. */
const nameForAddresses = 'rackwright';

/** Prepares a channel. Throws when the PEM texts are unusable. */
export function connect(options: ConnectOptions): Channel {
  const limits = { ...defaultRpcLimits, ...options.limits };
  const reconnect = options.reconnectAfterMs ?? defaultReconnectAfterMs;
  const expected = options.serverName ?? hostOf(options.target);
  const channelOptions: ChannelOptions = {
    'grpc.max_receive_message_length': limits.messageBytesMax,
    'grpc.max_send_message_length': limits.messageBytesMax,
    'grpc.keepalive_time_ms': limits.keepaliveAfterMs,
    'grpc.keepalive_timeout_ms': limits.keepaliveTimeoutMs,
    'grpc.keepalive_permit_without_calls': 0,
    'grpc.initial_reconnect_backoff_ms': reconnect.first,
    'grpc.max_reconnect_backoff_ms': reconnect.longest,
    'grpc.enable_retries': 0,
    'grpc.enable_http_proxy': 0,
    'grpc.enable_channelz': 0,
    'grpc.service_config_disable_resolution': 1,
    // Channels with other certificates must not share a connection.
    'grpc.use_local_subchannel_pool': 1,
    'grpc.ssl_target_name_override': isIP(expected) === 0 ? expected : nameForAddresses,
  };
  const tls = credentials.createSsl(
    Buffer.from(options.caPem),
    options.own ? Buffer.from(options.own.privateKeyPem) : null,
    options.own ? Buffer.from(options.own.certificateChainPem) : null,
    { checkServerIdentity: (_sni, certificate) => checkServerIdentity(expected, certificate) },
  );
  const grpc = new GrpcClient(options.target, tls, channelOptions);
  return { grpc, close: () => grpc.close() };
}

/** Host of "host:port" without brackets. */
function hostOf(target: string): string {
  const end = target.lastIndexOf(':');
  return (end < 0 ? target : target.slice(0, end)).replace(/^\[|\]$/g, '');
}
