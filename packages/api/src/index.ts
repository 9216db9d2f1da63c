/** Messages of rackwright.v1 by their own names; of the inner packages in a namespace each. */
export * as agent from './agent.ts';
export { type BmcProtocolId, bmcPorts, bmcProtocolId, isBmcProtocolId } from './bmc-protocols.ts';
export { type CleanStepName, cleanSteps } from './clean-steps.ts';
/** What calls end with, and the transport: services and clients over gRPC with TLS. */
export {
  type ApiError,
  type ApiErrorKind,
  ApiFailure,
  aborted,
  alreadyExists,
  type FieldViolation,
  failedPrecondition,
  invalidArgument,
  notFound,
  permissionDenied,
  unauthenticated,
  unavailable,
} from './error/api-error.ts';
export {
  disabledStep,
  type FailureName,
  failureNameOf,
  failureNames,
  failureTypeOf,
  failureWord,
  type HostRefusalName,
  hostRefusalNames,
  hostRefusalWord,
  otherHost,
  shownCertificate,
  type TransientName,
  transientCauseOf,
  transientNameOf,
  transientNames,
  troubleWord,
} from './failures.ts';
export { Health, HealthCheckResponse_ServingStatus } from './gen/grpc/health/v1/health_pb.ts';
export { ServerReflection } from './gen/grpc/reflection/v1/reflection_pb.ts';
export * from './gen/rackwright/v1/abandoned_pb.ts';
export * from './gen/rackwright/v1/access_pb.ts';
export * from './gen/rackwright/v1/audit_pb.ts';
export * from './gen/rackwright/v1/authority_pb.ts';
export * from './gen/rackwright/v1/credential_pb.ts';
export * from './gen/rackwright/v1/deploy_pb.ts';
export * from './gen/rackwright/v1/discovery_pb.ts';
export * from './gen/rackwright/v1/erasure_pb.ts';
export * from './gen/rackwright/v1/erasure_policy_pb.ts';
export * from './gen/rackwright/v1/explanation_pb.ts';
export * from './gen/rackwright/v1/failure_pb.ts';
export * from './gen/rackwright/v1/fleet_pb.ts';
export * from './gen/rackwright/v1/history_pb.ts';
export * from './gen/rackwright/v1/host_pb.ts';
export * from './gen/rackwright/v1/inventory_pb.ts';
export * from './gen/rackwright/v1/plan_pb.ts';
export * from './gen/rackwright/v1/pool_pb.ts';
export * from './gen/rackwright/v1/rack_pb.ts';
export * from './gen/rackwright/v1/run_pb.ts';
export * from './gen/rackwright/v1/secrets_pb.ts';
export * from './gen/rackwright/v1/template_pb.ts';
export * from './gen/rackwright/v1/workflow_pb.ts';
export { hostRefused } from './host-refused.ts';
export { Masking, maskText } from './masking.ts';
export { type OperatorClients, operatorClients } from './operators.ts';
export type { Guard } from './rpc/admission.ts';
export { type Channel, type ConnectOptions, connect } from './rpc/channel.ts';
export { type CallOptions, type Client, createClient } from './rpc/client.ts';
export {
  type BoundService,
  bind,
  type CallContext,
  type Handler,
  type Handlers,
  type PeerCertificate,
} from './rpc/handlers.ts';
export { defaultRpcLimits, type RpcLimits } from './rpc/limits.ts';
export { localChannel } from './rpc/local-channel.ts';
export {
  type RpcServer,
  type ServeOptions,
  type ServerCounts,
  serve,
} from './rpc/server.ts';
export type { Pace } from './rpc/stream.ts';
export type { KeyAndChain, ServerTls } from './rpc/tls.ts';
export * as runner from './runner.ts';
export { shownArguments } from './shown-arguments.ts';
export { shutdownText } from './shutdown.ts';
export { createHealthBoard, type HealthBoard } from './standard/health.ts';
export { createReflection } from './standard/reflection.ts';
export {
  awaitImageStep,
  commandStep,
  eraseMetadataStep,
  eraseStep,
  fetchImageStep,
  fileStep,
  prepareNetbootStep,
  scriptStep,
  verifyErasedStep,
  webhookStep,
  writeImageStep,
} from './step-names.ts';
export * as store from './store.ts';
export {
  checkCertificateProof,
  proofNonceBytesMax,
  proofNonceBytesMin,
  readP256PublicKey,
  signCertificateProof,
} from './trust/certificate-proof.ts';
export { publicKeySha256, sha256Hex } from './trust/fingerprint.ts';
export {
  formatJoinToken,
  type JoinTokenParts,
  joinSecretBytes,
  parseJoinSecret,
  parseJoinToken,
} from './trust/join-token.ts';
export { fetchPinnedCertificate, type PinnedProbe } from './trust/pinned-certificate.ts';
export { type FaceProbe, lookAtServer, type ServerFace } from './trust/server-face.ts';
export { counted, enumWord, lasting, verbFor } from './words.ts';
