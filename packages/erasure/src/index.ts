/**
 * Erasure, as far as it can be decided without touching a device: what to erase, how, where to
 * look afterwards, what the reading proves, and the certificate that says so. Pure; the only
 * `node:` module is `node:crypto`.
 */
export {
  buildStatement,
  parseEvidence,
  type StatementContext,
  statementSha256,
} from './certificate.ts';
export {
  blockBytes,
  type ChallengePlan,
  challengeContent,
  planChallenge,
  regionLabel,
  regionSeed,
  type Span,
  seedBytesMax,
  seedBytesMin,
} from './challenge.ts';
export {
  type CapacityFacts,
  type DeviceFacts,
  deviceIdentity,
  type HealthFacts,
  type MediaType,
  type NvmeFacts,
  type Partition,
  type Region,
  type SanitizeFacts,
  type SecurityState,
  type Transport,
  transports,
  type WriteCache,
} from './facts.ts';
export {
  type IdentityVerdict,
  judgeIdentity,
  type MachineWitness,
  meaningfulSerial,
  meaningfulUuid,
  type SerialNumbers,
  type WitnessName,
} from './identity.ts';
export { metadataSpans } from './metadata.ts';
export {
  type ErasureLevel,
  type ErasureMethod,
  type RerunClass,
  rerunClass,
  rerunClassOfAll,
} from './method.ts';
export { describePresence, type PresenceDifference, presenceDifferences } from './present.ts';
export { type ListedKind, type RefusalKind, refusalActions } from './refusal.ts';
export {
  decideScope,
  defaultScopePolicy,
  hiddenBytes,
  type ScopeDecision,
  type ScopePolicy,
} from './scope.ts';
export { ShapeError } from './shape.ts';
export {
  KeyError,
  pemOfPublicKey,
  publicKeyOf,
  sha256Hex,
  signatureFits,
  signBytes,
} from './signature.ts';
export {
  decideSigns,
  describeGap,
  type SignDecision,
  type SignGap,
  type SignKind,
  type SignSource,
  type StorageSign,
  signGaps,
} from './signs.ts';
export { boundDeviceLog, type ErasureStatement, parseStatement } from './statement.ts';
export {
  type BlockRead,
  combineVerdicts,
  startVerdict,
  type Verdict,
  type VerdictQuestion,
  type VerdictReader,
} from './verdict.ts';
export {
  type Certificate,
  type CertificateCheck,
  type CertificateProblem,
  describeProblem,
  verifyCertificate,
} from './verify.ts';
export {
  deviceFactsOf,
  methodOf,
  methodToWire,
  type RecordedVerdict,
  storageDeviceOf,
  transportOf,
  verdictOf,
  verdictToWire,
  witnessOfBmc,
  witnessOfSystem,
} from './wire.ts';
export { healthOf, healthOnWire, storageSignsOf, storageSignToWire } from './wire-facts.ts';
