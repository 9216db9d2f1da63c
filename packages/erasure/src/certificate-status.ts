/**
 * The validity of a certificate among others: whether its chain holds, whether the host was used
 * since, whether it was proved after a power cycle or revoked. Pure, and offline: a document that
 * is not given counts as unknown, and the report says so.
 */
import type { ErasureAddendum } from './documents.ts';
import { sha256Hex } from './signature.ts';
import { type ErasureStatement, provesErasure } from './statement.ts';
import type { Trust } from './trusted-keys.ts';
import { percent } from './verification.ts';
import {
  type Certificate,
  type CertificateProblem,
  describeProblem,
  verifyCertificate,
  verifyDocument,
} from './verify.ts';

/** The worst first: the first one that holds is the certificate's. */
export const certificateStatuses = [
  'invalid',
  'revoked',
  'void',
  'metadataOnly',
  'superseded',
  'valid',
] as const;
/**
 * `invalid`: differs from the signed content. `revoked`: does not hold any more. `void`: true, and
 * proves no erasure. `metadataOnly`: only partition tables and metadata were overwritten.
 * `superseded`: the host was used since.
 */
export type CertificateStatus = (typeof certificateStatuses)[number];

export interface StatusQuestion {
  readonly certificates: readonly Certificate[];
  /** Manifests, addenda and revocations that are at hand. */
  readonly documents: readonly Certificate[];
  readonly trust: Trust;
  /** Whether `documents` holds every revocation that there is. */
  readonly revocationsKnown: boolean;
}

export interface CertificateReport {
  readonly status: CertificateStatus;
  /** Undefined when it cannot be read. */
  readonly statement: ErasureStatement | undefined;
  /** Sentences. */
  readonly proved: readonly string[];
  readonly notProved: readonly string[];
  readonly problems: readonly string[];
}

export interface StatusAnswer {
  /** In the order of the question. */
  readonly reports: readonly CertificateReport[];
  /** Problems of documents that do not verify, by their place in the question. */
  readonly documentProblems: ReadonlyMap<number, readonly string[]>;
}

interface Follower {
  readonly digest: string;
  readonly storeIncarnation: string;
}

interface KnownCertificates {
  readonly question: StatusQuestion;
  /** SHA-256 of every certificate at hand. */
  readonly digests: ReadonlySet<string>;
  /** Statements by the certificate they name as the one before. */
  readonly followers: ReadonlyMap<string, readonly Follower[]>;
  /** Those that another store wrote into the place of a certificate, or of one before it. */
  readonly beside: ReadonlyMap<string, readonly Follower[]>;
  readonly latestEpoch: ReadonlyMap<string, number>;
  /** By the SHA-256 of their certificate. */
  readonly addenda: ReadonlyMap<string, ErasureAddendum>;
  readonly revocations: ReadonlyMap<string, string>;
}

/** Judges certificates together with all that is at hand; never throws. */
export function judgeCertificates(question: StatusQuestion): StatusAnswer {
  const checks = question.certificates.map((each) => verifyCertificate(each, question.trust));
  const statements = checks.map((check) => (check.kind === 'valid' ? check.statement : undefined));
  const { documentProblems, ...documents } = readDocuments(question, statements);
  const digests = question.certificates.map(({ statement }) => sha256Hex(statement));
  const followers = new Map<string, Follower[]>();
  for (const [index, statement] of statements.entries()) {
    if (statement === undefined) continue;
    const digest = digests[index] ?? '';
    const { storeIncarnation } = statement;
    const known = followers.get(chainPositionOf(statement)) ?? [];
    if (known.some((each) => each.digest === digest)) continue;
    followers.set(chainPositionOf(statement), [...known, { digest, storeIncarnation }]);
  }
  const beside = findBeside(digests, statements, followers);
  const known: KnownCertificates = {
    question,
    digests: new Set(digests),
    followers,
    beside,
    ...documents,
  };
  const reports = checks.map((check, index): CertificateReport => {
    if (check.kind === 'invalid') return invalid(check.problems);
    return judge(check.statement, digests[index] ?? '', known);
  });
  return { reports, documentProblems };
}

function readDocuments(
  { documents, trust }: StatusQuestion,
  statements: readonly (ErasureStatement | undefined)[],
) {
  const latestEpoch = new Map<string, number>();
  const addenda = new Map<string, ErasureAddendum>();
  const revocations = new Map<string, string>();
  const documentProblems = new Map<number, string[]>();
  const seen = (uid: string, epoch: number) => {
    latestEpoch.set(uid, Math.max(epoch, latestEpoch.get(uid) ?? 0));
  };
  for (const statement of statements) {
    if (statement !== undefined) seen(statement.host.uid, statement.useEpoch);
  }
  for (const [index, document] of documents.entries()) {
    const check = verifyDocument(document, trust);
    if (check.kind === 'invalid') {
      documentProblems.set(index, check.problems.map(describeProblem));
      continue;
    }
    const { content } = check;
    switch (content.kind) {
      case 'manifest':
        seen(content.manifest.host.uid, content.manifest.useEpoch);
        break;
      case 'addendum':
        addenda.set(content.addendum.certificateSha256, content.addendum);
        break;
      case 'revocation': {
        const { certificateSha256, reason, detail, createdAt } = content.revocation;
        revocations.set(certificateSha256, `revoked on ${createdAt}: ${reason}: ${detail}`);
        break;
      }
    }
  }
  return { latestEpoch, addenda, revocations, documentProblems };
}

/** Why an addendum does not prove the certificate that it names; undefined: it does. */
function addendumLack(addendum: ErasureAddendum, statement: ErasureStatement): string | undefined {
  const { device, host, challengeSeed, bootId } = statement;
  const isSameDevice =
    addendum.device.serial === device.serial && addendum.device.wwn === device.wwn;
  if (!isSameDevice || addendum.host.uid !== host.uid) return 'its addendum is of another device';
  // The boot that erased proves nothing: its caches may still hold the written data.
  if (addendum.bootId === bootId) return 'its addendum is of the boot that erased';
  if (addendum.erasedSeed !== challengeSeed) return 'its addendum is of places of another seed';
  return undefined;
}

function judge(
  statement: ErasureStatement,
  digest: string,
  known: KnownCertificates,
): CertificateReport {
  const proved = [
    `the control plane signed it, and its agent signed the evidence (${statement.operationId})`,
    ...provedOf(statement),
  ];
  const notProved = notProvedOf(statement);
  const addendum = known.addenda.get(digest);
  const lack = addendum === undefined ? undefined : addendumLack(addendum, statement);
  if (addendum !== undefined && lack === undefined) {
    proved.push(`read again after a power cycle on ${addendum.createdAt}`);
  } else {
    const why = lack === undefined ? '' : `: ${lack}`;
    notProved.push(`not yet verified after a power cycle, as far as is known here${why}`);
  }
  const chain = chainProblem(statement, known);
  if (chain !== undefined) return { ...invalid([]), statement, problems: [chain] };
  notProved.push(...chainLack(statement, digest, known));
  const revoked = known.revocations.get(digest);
  if (revoked === undefined && !known.question.revocationsKnown) {
    notProved.push('whether it was revoked is not known: no complete list of revocations is given');
  }
  const latest = known.latestEpoch.get(statement.host.uid) ?? 0;
  if (latest > statement.useEpoch) {
    const uses = `this is of use ${statement.useEpoch}, and use ${latest} is known`;
    notProved.push(`that the device is still erased: ${uses}`);
  }
  const problems = revoked === undefined ? [] : [revoked];
  const status = statusOf(statement, revoked !== undefined, latest > statement.useEpoch);
  return { status, statement, proved, notProved, problems };
}

function statusOf(statement: ErasureStatement, revoked: boolean, used: boolean): CertificateStatus {
  if (revoked) return 'revoked';
  if (statement.level === null) return 'void';
  if (!provesErasure(statement)) return 'metadataOnly';
  return used ? 'superseded' : 'valid';
}

function provedOf(statement: ErasureStatement): string[] {
  const { verdict, verification, level, methodTitle } = statement;
  if (verdict.kind !== 'erased' || level === null) return [];
  const read = `${verdict.placesRead} places of 4 KiB, ${verdict.bytesRead} bytes, were read back`;
  const how = verification.level === 'full' ? 'every byte' : ppcm(verification.shareReadPpcm);
  const found = foundText(verification);
  return [`${level} by ${methodTitle}`, `${read}: ${how}${found}`];
}

function foundText({ findsSharePpcm, confidenceBp }: ErasureStatement['verification']): string {
  if (findsSharePpcm === null || findsSharePpcm === 0 || confidenceBp === null) return '';
  const sure = percent(confidenceBp / 10_000);
  return `; a share of ${ppcm(findsSharePpcm)} left anywhere is found with ${sure} confidence`;
}

function notProvedOf(statement: ErasureStatement): string[] {
  const { verdict, ofFailedStep, capacity, identity, device } = statement;
  const statements: string[] = [];
  if (ofFailedStep) statements.push('nothing: its step failed');
  if ('reason' in verdict) statements.push(`that it was erased: ${verdict.reason}`);
  if (verdict.kind === 'switchedOff')
    statements.push('that it was erased: the verdict was switched off');
  if (statement.method === 'metadataOnly') statements.push('that anything but metadata was erased');
  if (!statement.methodProvenOnDevice) statements.push('the method is not yet proven on a device');
  if (capacity.kind === 'notExamined') statements.push(`hidden areas: ${capacity.reason}`);
  if (device.certifiedAs === 'volume') statements.push('the disks behind this RAID volume');
  if (identity.kind === 'waived')
    statements.push(`which machine it was: waived by ${identity.policy}`);
  return [...statements, ...statement.notExamined.map((area) => `not examined: ${area}`)];
}

/** The first statement of a host's chain names none before it; there is one such place. */
function chainPositionOf({ previousSha256, host }: ErasureStatement): string {
  return previousSha256 ?? `first of ${host.uid}`;
}

/** One store writes one statement into each place of a chain: of two, one is false. */
function chainProblem(statement: ErasureStatement, known: KnownCertificates): string | undefined {
  const { storeIncarnation, previousSha256 } = statement;
  const here = known.followers.get(chainPositionOf(statement)) ?? [];
  const count = here.filter((each) => each.storeIncarnation === storeIncarnation).length;
  return count > 1 ? `${count} certificates follow ${previousSha256 ?? 'none'}` : undefined;
}

/**
 * Certificates that another store wrote in place of each certificate, or of the last one before it:
 * all later ones are beside those. By digest; each certificate is visited once.
 */
function findBeside(
  digests: readonly string[],
  statements: readonly (ErasureStatement | undefined)[],
  followers: ReadonlyMap<string, readonly Follower[]>,
): ReadonlyMap<string, readonly Follower[]> {
  const byDigest = new Map(digests.map((digest, index) => [digest, statements[index]]));
  const beside = new Map<string, readonly Follower[]>();
  for (const digest of digests) {
    const path: string[] = [];
    let found: readonly Follower[] = [];
    let at: string | null = digest;
    while (at !== null && found.length === 0) {
      const statement = byDigest.get(at);
      if (statement === undefined) break;
      const { storeIncarnation } = statement;
      path.push(at);
      const here = followers.get(chainPositionOf(statement)) ?? [];
      found = beside.get(at) ?? here.filter((each) => each.storeIncarnation !== storeIncarnation);
      at = beside.has(at) ? null : statement.previousSha256;
    }
    for (const each of path) beside.set(each, found);
  }
  return beside;
}

function chainLack(
  { previousSha256 }: ErasureStatement,
  digest: string,
  { digests, beside }: KnownCertificates,
): string[] {
  const isGiven = previousSha256 === null || digests.has(previousSha256);
  return [
    ...(isGiven ? [] : [`the certificate before it (SHA-256 ${previousSha256}) is not given`]),
    // After a restore this is expected: certificates from after the copy are beside it.
    ...(beside.get(digest) ?? []).map(
      (other) =>
        `the order of its chain: the store was put back to a copy, and SHA-256 ${other.digest} ` +
        'follows the same certificate as it, or as one before it',
    ),
  ];
}

function invalid(problems: readonly CertificateProblem[]): CertificateReport {
  const texts = problems.map(describeProblem);
  const nothing = { statement: undefined, proved: [], notProved: ['anything'] };
  return { status: 'invalid', ...nothing, problems: texts };
}

function ppcm(share: number): string {
  return percent(share / 100_000_000);
}
