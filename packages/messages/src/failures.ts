/**
 * Names of failures, for tables and people. `failure.proto` is the one source of both lists: a
 * value that is added there is missing in each table with these keys, and that does not compile.
 */
import { create } from '@bufbuild/protobuf';
import { BmcTrouble } from './gen/rackwright/agent/v1/report_pb.ts';
import type { BootStepKind } from './gen/rackwright/v1/boot_pb.ts';
import {
  type DiskElsewhere,
  type FailureDetails,
  FailureDetailsSchema,
  FailureType,
  HostRefusal,
  type PriorityPlace,
  TransientCause,
} from './gen/rackwright/v1/failure_pb.ts';

type Words<S extends string> = S extends `${infer Head}_${infer Tail}`
  ? `${Capitalize<Lowercase<Head>>}${Words<Tail>}`
  : Capitalize<Lowercase<S>>;

/** "IDENTITY_MISMATCH" → "identityMismatch" */
type CamelCase<S extends string> = Uncapitalize<Words<S>>;

type NamesOf<Enum> = CamelCase<Exclude<keyof Enum & string, 'UNSPECIFIED'>>;

/** Why work failed: "identityMismatch". */
export type FailureName = NamesOf<typeof FailureType>;
/** Why an attempt could not find out: "runnerAway". */
export type TransientName = NamesOf<typeof TransientCause>;

/** Why a host refuses a request: "busy". */
export type HostRefusalName = NamesOf<typeof HostRefusal>;

interface Names<Name extends string, Value extends number> {
  readonly names: readonly Name[];
  readonly valueOf: Readonly<Record<Name, Value>>;
  readonly nameOf: ReadonlyMap<number, Name>;
}

function namesOf<Enum extends Readonly<Record<string, string | number>>, Value extends number>(
  values: Enum,
): Names<NamesOf<Enum>, Value> {
  const pairs = Object.entries(values).flatMap(([key, value]): [NamesOf<Enum>, Value][] => {
    if (typeof value !== 'number' || value === 0) return [];
    return [[camelCase(key) as NamesOf<Enum>, value as Value]];
  });
  return {
    names: pairs.map(([name]) => name),
    valueOf: Object.fromEntries(pairs) as Record<NamesOf<Enum>, Value>,
    nameOf: new Map(pairs.map(([name, value]) => [value, name])),
  };
}

function camelCase(key: string): string {
  return key.toLowerCase().replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

const failures = namesOf<typeof FailureType, FailureType>(FailureType);
const troubles = namesOf<typeof BmcTrouble, BmcTrouble>(BmcTrouble);
const transients = namesOf<typeof TransientCause, TransientCause>(TransientCause);

const hostRefusals = namesOf<typeof HostRefusal, HostRefusal>(HostRefusal);

/** Every name, in the order of the list. */
export const failureNames: readonly FailureName[] = failures.names;
export const transientNames: readonly TransientName[] = transients.names;

/** On the wire. */
export function failureTypeOf(name: FailureName): FailureType {
  return failures.valueOf[name];
}

export const hostRefusalNames: readonly HostRefusalName[] = hostRefusals.names;

/** The word in the metadata of an ErrorInfo: "NOTHING_TO_DO". */
export function hostRefusalOf(name: HostRefusalName): HostRefusal {
  return hostRefusals.valueOf[name];
}

export function hostRefusalWord(name: HostRefusalName): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}

/** Undefined for a type that this version does not know. */
export function failureNameOf(type: FailureType): FailureName | undefined {
  return failures.nameOf.get(type);
}

/** For people, also of a type that this version does not know. */
export function failureWord(type: FailureType): string {
  return failures.nameOf.get(type) ?? (type === 0 ? 'unknown' : `unknown (${type})`);
}

/** For people and logs: "lockedOut"; "none" where nothing is in the way. */
export function troubleWord(trouble: BmcTrouble): string {
  return troubles.nameOf.get(trouble) ?? 'none';
}

/** On the wire. */
export function transientCauseOf(name: TransientName): TransientCause {
  return transients.valueOf[name];
}

/** Undefined for a cause that this version does not know. */
export function transientNameOf(cause: TransientCause): TransientName | undefined {
  return transients.nameOf.get(cause);
}

/** Details of `certificateMismatch`; SHA-256 in hexadecimal digits. */
export function shownCertificate(sha256: string): FailureDetails {
  return create(FailureDetailsSchema, { kind: { case: 'shownCertificate', value: { sha256 } } });
}

/**
 * Details of `notCertified`: the place whose setting keeps the step out of cleans; `pool` where
 * that is by its label.
 */
export function disabledStep(step: string, by: PriorityPlace, pool = ''): FailureDetails {
  return create(FailureDetailsSchema, {
    kind: { case: 'disabledStep', value: { step, by, pool } },
  });
}

/** The missing step of a boot over the network. */
export function bootStalled(missing: BootStepKind): FailureDetails {
  return create(FailureDetailsSchema, { kind: { case: 'bootStalled', value: { missing } } });
}

/** Details of `deviceRefused`: the disks of other hosts that its message names. */
export function namedDisks(disks: readonly DiskElsewhere[]): FailureDetails {
  return create(FailureDetailsSchema, {
    kind: { case: 'disksElsewhere', value: { disks: [...disks] } },
  });
}

/** The disks of other hosts that the message of a failure names. */
export function disksNamedBy(details: FailureDetails | undefined): readonly DiskElsewhere[] {
  return details?.kind.case === 'disksElsewhere' ? details.kind.value.disks : [];
}

/** Details of `identityMismatch`; "hosts/HOST". */
export function otherHost(name: string): FailureDetails {
  return create(FailureDetailsSchema, { kind: { case: 'otherHost', value: { name } } });
}
