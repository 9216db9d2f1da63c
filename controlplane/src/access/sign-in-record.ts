/** The record of a browser's sign-in, and its owner. Pure. */
import { create, type MessageShape } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { type Incarnation, Role, readActor, store as wire } from '@rackwright/messages';
import type { Principal } from './principal.ts';

export const signInSchema = wire.BrowserSessionRecordSchema;
export type SignInRecord = MessageShape<typeof signInSchema>;

/** Who has signed in, and from when until when; times in milliseconds of wall time. */
export interface NewSignIn {
  readonly principal: Principal;
  readonly createMs: number;
  readonly expireMs: number;
  /** The incarnation of the store. */
  readonly incarnation: Incarnation;
  /** SHA-256, hex, of the configuration that gives the provider's users their roles. */
  readonly configSha256: string;
}

/** The record of a new sign-in. */
export function signInRecord(opened: NewSignIn): SignInRecord {
  const { principal, createMs, expireMs, incarnation } = opened;
  return create(signInSchema, {
    createTime: timestampFromMs(createMs),
    expireTime: timestampFromMs(expireMs),
    incarnation,
    actor: principal.actor,
    issuer: principal.issuer,
    opener: openerOf(opened),
  });
}

function openerOf({ principal, configSha256 }: NewSignIn) {
  const { token: name, proofSha256, role, scope } = principal;
  if (name !== '') {
    const value = { name, secretSha256: Buffer.from(proofSha256, 'hex') };
    return { case: 'token', value } as const;
  }
  const { racks, pools } = scope;
  const kept = { racks: [...racks], pools: [...pools] };
  const value = { role, scope: kept, configSha256: Buffer.from(configSha256, 'hex') };
  return { case: 'grant', value } as const;
}

export function createMsOf({ createTime }: SignInRecord): number {
  return createTime === undefined ? 0 : timestampMs(createTime);
}

/** A record without an end counts as expired. */
export function expireMsOf({ expireTime }: SignInRecord): number {
  return expireTime === undefined ? 0 : timestampMs(expireTime);
}

/** One name for all sign-ins of a person. */
export function callerOf({ issuer, actor }: Pick<SignInRecord, 'issuer' | 'actor'>): string {
  return `${issuer} ${actor}`;
}

/**
 * The caller that the identity provider authenticated; undefined: it did so under another
 * configuration, or not at all.
 */
export function granted(record: SignInRecord, configSha256: string): Principal | undefined {
  if (record.opener.case !== 'grant') return undefined;
  const { role, scope, configSha256: given } = record.opener.value;
  if (Buffer.from(given).toString('hex') !== configSha256 || role === Role.UNSPECIFIED) {
    return undefined;
  }
  return {
    actor: readActor(record.actor),
    role,
    scope: { racks: scope?.racks ?? [], pools: scope?.pools ?? [] },
    token: '',
    issuer: record.issuer,
    expireMs: expireMsOf(record),
    proofSha256: '',
  };
}
