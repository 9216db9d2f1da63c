/** Messages of rackwright.v1 by their own names; of the inner packages in a namespace each. */

export {
  type Actor,
  type ActorKind,
  actorKind,
  actorName,
  actors,
  agentActor,
  batchOfActor,
  isBySystem,
  isPerson,
  isPool,
  isPoolClaim,
  isSystem,
  oidcActor,
  poolActor,
  readActor,
  systemActor,
  tokenActor,
  userActor,
} from './actors.ts';
export * as agent from './agent.ts';
export {
  type BmcProtocolId,
  bmcPorts,
  bmcProtocolId,
  bmcProtocolIds,
  byHand,
  isSpokenProtocolId,
  type SpokenProtocolId,
} from './bmc-protocols.ts';
export { bootLines, bootStepBy, bootStepText, bootText, missingBootStep } from './boot-trace.ts';
export { burnInLines, burnInName, burnInText } from './burn-in.ts';
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
} from './call/api-error.ts';
export {
  type AnyHandler,
  type BoundService,
  bind,
  type CallContext,
  type Guard,
  type Handler,
  type Handlers,
  type Pace,
  type PeerCertificate,
} from './call/handlers.ts';
export { hostRefused } from './call/host-refused.ts';
export type { PageRequest, PageResponse, Respond } from './call/page.ts';
export { type CleanStepName, cleanSteps } from './clean-steps.ts';
export { type DiscoveryRefusal, discoveryRefusalOf } from './discovery-refusal.ts';
export { type DuplicateAgent, duplicateAgentOf } from './duplicate-agent.ts';
export {
  bootStalled,
  disabledStep,
  disksNamedBy,
  type FailureName,
  failureNameOf,
  failureNames,
  failureTypeOf,
  failureWord,
  type HostRefusalName,
  hostRefusalNames,
  hostRefusalOf,
  hostRefusalWord,
  namedDisks,
  otherHost,
  shownCertificate,
  type TransientName,
  transientCauseOf,
  transientNameOf,
  transientNames,
  troubleWord,
} from './failures.ts';
export * from './gen/grpc/health/v1/health_pb.ts';
export * from './gen/grpc/reflection/v1/reflection_pb.ts';
export * from './gen/rackwright/v1/abandoned_pb.ts';
export * from './gen/rackwright/v1/access_pb.ts';
export * from './gen/rackwright/v1/audit_pb.ts';
export * from './gen/rackwright/v1/authority_pb.ts';
export * from './gen/rackwright/v1/bmc_pb.ts';
export * from './gen/rackwright/v1/boot_pb.ts';
export * from './gen/rackwright/v1/burn_in_pb.ts';
export * from './gen/rackwright/v1/credential_pb.ts';
export * from './gen/rackwright/v1/deploy_pb.ts';
export * from './gen/rackwright/v1/discovery_pb.ts';
export * from './gen/rackwright/v1/erasure_pb.ts';
export * from './gen/rackwright/v1/erasure_policy_pb.ts';
export * from './gen/rackwright/v1/event_pb.ts';
export * from './gen/rackwright/v1/event_sink_pb.ts';
export * from './gen/rackwright/v1/explanation_pb.ts';
export * from './gen/rackwright/v1/failure_pb.ts';
export * from './gen/rackwright/v1/fleet_pb.ts';
export * from './gen/rackwright/v1/history_pb.ts';
export * from './gen/rackwright/v1/host_pb.ts';
export * from './gen/rackwright/v1/inventory_pb.ts';
export * from './gen/rackwright/v1/plan_pb.ts';
export * from './gen/rackwright/v1/pool_pb.ts';
export * from './gen/rackwright/v1/rack_fault_pb.ts';
export * from './gen/rackwright/v1/rack_pb.ts';
export * from './gen/rackwright/v1/run_pb.ts';
export * from './gen/rackwright/v1/secrets_pb.ts';
export * from './gen/rackwright/v1/template_pb.ts';
export * from './gen/rackwright/v1/workflow_pb.ts';
export { isGivenUp } from './goal-backoff.ts';
export * as googleRpc from './google-rpc.ts';
export {
  type Cable,
  cablesOf,
  partKindText,
  partMatchText,
  partText,
  switchText,
} from './hardware-text.ts';
export {
  type BmcFault,
  faultOfType,
  type HostFault,
  hasFault,
  type RunFault,
} from './host-faults.ts';
export {
  type AgentSessionId,
  asAgentSessionId,
  asBatchId,
  asCredentialId,
  asIncarnation,
  asPoolId,
  asPoolUid,
  asReplicaId,
  asRevision,
  asRunNumber,
  asSinkUid,
  asTemplateId,
  asTokenId,
  asWorkflowRunNumber,
  asWorkflowUid,
  type BatchId,
  type BootId,
  type CredentialId,
  type CredentialName,
  type DeploymentId,
  deploymentIdOf,
  type EventId,
  type HostId,
  type HostName,
  type HostUid,
  type Incarnation,
  isChosenId,
  type MachineId,
  noDeployment,
  noRevision,
  noRun,
  type OperationId,
  type PoolId,
  type PoolUid,
  type RackId,
  type RackName,
  type ReplicaId,
  type RequestId,
  type Revision,
  type RunNumber,
  type RunnerSessionId,
  type SinkId,
  type SinkUid,
  type TemplateId,
  type TokenId,
  type WorkflowRunNumber,
  type WorkflowUid,
} from './ids.ts';
export { Masking, maskText } from './masking.ts';
export {
  isPoolBecause,
  type PoolConditionType,
  type PoolReasons,
  poolCondition,
} from './pool-conditions.ts';
export * as runner from './runner.ts';
export { shownArguments } from './shown-arguments.ts';
export { shutdownText } from './shutdown.ts';
export { parseSourceProblem, type SourceProblem, sourceProblemText } from './source-problem.ts';
export {
  applyVolumesStep,
  awaitImageStep,
  burnInCpuStep,
  burnInDiskStep,
  burnInMemoryStep,
  burnInNetworkStep,
  checkSettingsStep,
  commandStep,
  eraseMetadataStep,
  eraseStep,
  fetchImageStep,
  fileStep,
  isBurnIn,
  isErasure,
  isTemplateOnly,
  isTemplateStepOfRunner,
  ownPrefix,
  ownPriorityUsual,
  resetBmcStep,
  scriptStep,
  updateFirmwareStep,
  verifyErasedStep,
  webhookStep,
  writeImageStep,
} from './step-names.ts';
export { hasTitle, stepText } from './step-title.ts';
export * as store from './store.ts';
export { type StoreRefusal, storeRefusalOf } from './store-refusal.ts';
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
export {
  type HostWait,
  hostWaitOf,
  hostWaits,
  type PendingWait,
  pendingWaitOf,
  pendingWaits,
} from './waits.ts';
export { counted, durationText, enumWord, verbFor } from './words.ts';
