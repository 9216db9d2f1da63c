/**
 * Resolves tags at registries, with the fleet's settings.
 *
 * Invariants:
 * 1. A mirror is never asked: it could answer with an old value of the tag.
 * 2. A credential is opened for one request, shown to its registry alone, and recorded. It is not
 *    sent to a rack, so bounds by rack do not apply.
 * 3. When a registry requests a pause, all callers of this replica keep it.
 */
import type { FailureName, store as wire } from '@rackwright/messages';
import {
  type Digest,
  isOciError,
  type OciError,
  type OciFailureKind,
  parseDigest,
  RegistryClient,
} from '@rackwright/oci';
import { type Clock, errorText, type WebClient } from '@rackwright/platform';
import type { StateStore } from '@rackwright/store';
import type { AuditSink } from '../audit/index.ts';
import { idOf, isStoreUnavailable } from '../records/index.ts';
import {
  type CredentialOpener,
  credentialRecord,
  noteGiven,
  openNamed,
  whyNotGiven,
} from '../secrets/index.ts';
import { internalAddressesOf, registryOf } from './access.ts';
import { versionOf } from './image-version.ts';
import { readImageName } from './name.ts';
import { platformsOf } from './platforms.ts';
import type { ResolveImage, ResolveResult } from './resolve.ts';

export interface RegistryResolverParts {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly web: WebClient;
  readonly openCredential: CredentialOpener['openCredential'];
  readonly audit?: AuditSink;
  /** The fleet's present record. */
  readonly fleet: () => Promise<wire.FleetRecord | undefined>;
}

/** The time limit of one request, including tokens and redirects. */
const questionTimeoutMs = 30_000;
/** A registry may request a longer pause; it is asked again after this time anyway. */
const restMsMax = 3_600_000;
const restDefaultMs = 30_000;
/** The most registries whose pause is remembered. */
const restsMax = 256;

type FailedAnswer = Extract<ResolveResult, { kind: 'failed' }>;

/** A resolver that asks registries. */
export function askRegistries(parts: RegistryResolverParts): ResolveImage {
  const restsUntilMs = new Map<string, number>();
  return async (reference, known, signal) => {
    const read = readImageName(reference);
    if (read.kind === 'bad') return failed('invalidArgument', `${reference} ${read.problem}`);
    const { name } = read;
    if (name.kind === 'file' || name.tag === undefined) {
      return failed('invalidArgument', `${reference} names no tag`);
    }
    const leftMs = (restsUntilMs.get(name.registry) ?? 0) - parts.clock.nowMs();
    if (leftMs > 0) return resting(name.registry, leftMs);
    const answer = await ask(parts, { ...name, tag: name.tag }, known, signal);
    if (answer.kind === 'failed' && answer.retryAfterMs !== undefined) {
      if (restsUntilMs.size >= restsMax) restsUntilMs.clear();
      restsUntilMs.set(name.registry, parts.clock.nowMs() + answer.retryAfterMs);
    }
    return answer;
  };
}

function resting(registry: string, leftMs: number): FailedAnswer {
  const seconds = Math.ceil(leftMs / 1_000);
  const message = `${registry} wants to be left alone for another ${seconds} s (429)`;
  return { ...failed('registryUnreachable', message), retryAfterMs: leftMs };
}

interface TagName {
  readonly registry: string;
  readonly repository: string;
  readonly tag: string;
}

async function ask(
  parts: RegistryResolverParts,
  { registry, repository, tag }: TagName,
  known: string,
  signal: AbortSignal,
): Promise<ResolveResult> {
  const late = new AbortController();
  const cancel = parts.clock.after(questionTimeoutMs, () => late.abort());
  try {
    const access = await accessTo(parts, registry, tag);
    if ('kind' in access) return access;
    const either = AbortSignal.any([signal, late.signal]);
    const client = new RegistryClient(parts.web, access);
    const found = await client.resolve(repository, tag, parseDigest(known), either);
    if (found.kind === 'unchanged') return found;
    const read = (digest: Digest): Promise<Uint8Array> =>
      client.manifest(repository, digest, either);
    const version = await versionOf(found.bytes, read);
    const platforms = platformsOf(found.digest, found.bytes);
    return { kind: 'digest', digest: found.digest, version, platforms };
  } catch (error) {
    if (late.signal.aborted) {
      const message = `${registry} has not answered in ${questionTimeoutMs / 1_000} s`;
      return failed('registryUnreachable', `${message}; see that it can be reached from here`);
    }
    if (isStoreUnavailable(error)) throw error;
    if (!isOciError(error)) return failed('internal', errorText(error));
    return failureOf(error, registry);
  } finally {
    cancel();
  }
}

async function accessTo(parts: RegistryResolverParts, registry: string, tag: string) {
  const fleet = await parts.fleet();
  const sources = fleet?.fleet?.spec;
  const settings = registryOf(sources?.registries, registry);
  const {
    credential: name = '',
    plainHttp = false,
    caPem = '',
    tokenService = '',
  } = settings ?? {};
  const source = {
    ...{ registry, plainHttp, ...(caPem === '' ? {} : { caPem }) },
    ...(tokenService === '' ? {} : { tokenService }),
    internal: internalAddressesOf(sources, registry),
  };
  if (name === '') return { ...source, credential: undefined };
  try {
    const record = await credentialRecord(parts, name);
    const rack = record?.credential?.racks[0] ?? '';
    const opened = await openNamed(parts, name, { rack });
    if (opened === undefined) {
      const id = idOf(name);
      const command = `rackwright credential create ${id} --username USER`;
      const text = `${name}, which the fleet names for ${registry}, does not exist`;
      return failed('registryUnauthorized', `${text}; create it: ${command}`);
    }
    noteGiven(parts.audit, opened, `${registry}, for the tag ${tag}`);
    const { username, password } = opened;
    return { ...source, credential: { username, password } };
  } catch (error) {
    if (isStoreUnavailable(error)) throw error;
    return failed('registryUnauthorized', `${registry}: ${whyNotGiven(error)}`);
  }
}

/** What a person can do about the error. */
function remedyOf({ kind }: OciError, registry: string): string {
  switch (kind) {
    case 'unauthorized':
      return (
        `; give it a credential: rackwright fleet registry set ${registry} --credential ID, and ` +
        'name its token service where it has one elsewhere: --token-service HOST'
      );
    case 'forbidden':
      return '; if that is meant, list it: rackwright fleet update --internal-address ADDRESS';
    case 'untrusted':
      return `; name its authority: rackwright fleet registry set ${registry} --authority FILE`;
    case 'refused':
      return `; if it has no TLS: rackwright fleet registry set ${registry} --plain-http`;
    case 'notFound':
      return '; see that the name is right and the tag has been pushed';
    case 'unreachable':
      return '; see that it can be reached from the control plane, as the fleet says to ask it';
    default:
      return '';
  }
}

const failureNames: Readonly<Record<OciFailureKind, FailureName>> = {
  unauthorized: 'registryUnauthorized',
  forbidden: 'notAllowed',
  untrusted: 'registryUnreachable',
  refused: 'registryUnreachable',
  unreachable: 'registryUnreachable',
  cancelled: 'registryUnreachable',
  tooMany: 'registryUnreachable',
  notFound: 'imageNotFound',
  noPlatform: 'wrongArchitecture',
  digestMismatch: 'imageDigestMismatch',
  truncated: 'imageTruncated',
  tooLarge: 'noSpace',
  noSpace: 'noSpace',
  malformed: 'badImage',
};

function failureOf(error: OciError, registry: string): FailedAnswer {
  const { kind, message, retryAfterMs } = error;
  const failure = failed(failureNames[kind], `${message}${remedyOf(error, registry)}`);
  if (kind !== 'tooMany' && retryAfterMs === undefined) return failure;
  return { ...failure, retryAfterMs: Math.min(restMsMax, retryAfterMs ?? restDefaultMs) };
}

function failed(type: FailureName, message: string): FailedAnswer {
  return { kind: 'failed', type, message };
}
