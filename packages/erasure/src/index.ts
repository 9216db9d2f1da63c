/**
 * The part of erasure that needs no access to a device: which devices to erase, the method, the
 * places to read afterwards, the verdict, and the certificate about it. Pure; the only `node:`
 * module is `node:crypto`.
 */

export {
  compareBmcDrives,
  type DriveFinding,
  type DriveMatch,
  type ListedDrive,
  listedDriveOf,
} from './bmc-drives.ts';
export {
  type BootMedium,
  bootMediaOf,
  bootMediumBytesMax,
  mayBeBootMedium,
} from './boot-media.ts';
export {
  buildStatement,
  joinEvidence,
  parseEvidence,
  type SeparatedStatement,
  type StatementContext,
  separatedEvidenceSha256,
  separateEvidence,
  statementSha256,
} from './certificate.ts';
export {
  type CertificateReport,
  type CertificateStatus,
  certificateStatuses,
  judgeCertificates,
  type StatusAnswer,
  type StatusQuestion,
} from './certificate-status.ts';
export {
  type ByteSpan,
  blockBytes,
  type ChallengePlan,
  challengeContent,
  markContent,
  planChallenge,
  planMarks,
  type ReadPlan,
  regionLabel,
  regionSeed,
  seedBytesMax,
  seedBytesMin,
  type Verification,
} from './challenge.ts';
export { type DiskName, diskNames } from './disk-names.ts';
export {
  type AddendumContext,
  buildAddendum,
  buildManifest,
  buildRevocation,
  type ErasureAddendum,
  type ErasureDocumentContent,
  type ErasureManifest,
  type ErasureRevocation,
  kindOfDocument,
  parseDocument,
} from './documents.ts';
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
  uuidsAlike,
  type WitnessName,
} from './identity.ts';
export { metadataSpans } from './metadata.ts';
export {
  type ErasureLevel,
  type ErasureMethod,
  leavesContent,
  type MethodFacts,
  methodFacts,
  type RerunClass,
  rerunClass,
  rerunClassOfAll,
  type SelfErasure,
} from './method.ts';
export {
  describeImplausible,
  impliedCounts,
  impliedReading,
  type OrderedDevice,
  type PlausibilityProblem,
  plausibilityProblems,
  speedMax,
} from './plausibility.ts';
export { describePresence, type PresenceDifference, presenceDifferences } from './present.ts';
export {
  type ListedKind,
  type RefusalKind,
  refusalActions,
  securityErasePassword,
} from './refusal.ts';
export {
  decideScope,
  defaultScopePolicy,
  hiddenBytes,
  isDismantlable,
  orderedScopePolicy,
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
export {
  boundDeviceLog,
  type Disposition,
  type ErasureStatement,
  parseStatement,
  provesErasure,
} from './statement.ts';
export { type Trust, type TrustedKey, trustedKeys } from './trusted-keys.ts';
export {
  type BlockReadResult,
  chunkBytesMax,
  combineVerdicts,
  startVerdict,
  type Verdict,
  type VerdictQuestion,
  type VerdictReader,
} from './verdict.ts';
export {
  blocksForHole,
  blocksForShare,
  defaultVerificationPolicy,
  describeVerification,
  holeFound,
  percent,
  planRereading,
  planVerification,
  type ReadSpeed,
  regionVerification,
  shareFound,
  type VerificationDescription,
  type VerificationPolicy,
} from './verification.ts';
export {
  orderedVerification,
  verificationOf,
  verificationPolicyOf,
  verificationPolicyProblem,
  verificationToWire,
} from './verification-wire.ts';
export {
  type Certificate,
  type CertificateCheck,
  type CertificateProblem,
  type DocumentCheck,
  describeProblem,
  verifyCertificate,
  verifyDocument,
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
