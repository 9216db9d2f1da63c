/** Services and clients over gRPC with TLS, and the guards of their listeners. */
export { type Channel, type ConnectOptions, connect } from './client/channel.ts';
export { type CallOptions, type Client, createClient } from './client/client.ts';
export { localChannel } from './client/local-channel.ts';
export { type OperatorClients, operatorClients } from './client/operators.ts';
export type { Repeats } from './client/repeats.ts';
export { overHttp } from './http/http-calls.ts';
export {
  fetchPinnedCertificate,
  type PinnedProbe,
  probeCertificates,
} from './probe/pinned-certificate.ts';
export { type ProbedServer, probeServer, type ServerProbe } from './probe/server-probe.ts';
export { type RpcServer, type ServeOptions, type ServerCounts, serve } from './server/server.ts';
export { createHealthBoard, type HealthBoard } from './standard/health.ts';
export { createReflection } from './standard/reflection.ts';
export {
  defaultRpcLimits,
  type ListenerLimits,
  type RpcLimits,
  rpcLimitsOf,
  sessionKeepalive,
} from './wire/limits.ts';
export type { KeyAndChain, ServerTls } from './wire/tls.ts';
