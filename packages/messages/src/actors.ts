/**
 * Who did something or asked for it: a person, a pool, a part of Rackwright. Messages and records
 * carry an actor as a text; nothing but this file looks at the text.
 *
 * Invariants:
 * 1. A maker gives an actor the text that records keep and people read.
 * 2. No two kinds share a text: a name begins behind the word of its kind.
 * 3. A text of no known kind is an actor of kind `unknown`, which has no rights.
 */
import type { Claim } from './gen/rackwright/v1/host_pb.ts';
import {
  asBatchId,
  type BatchId,
  isChosenId,
  type PoolId,
  type RackName,
  type TokenId,
} from './ids.ts';

export type Actor = string & { readonly __brand: 'Actor' };

export type ActorKind =
  /** A caller with the first token: "user:NAME". */
  | 'user'
  | 'token'
  /** A caller whom an identity provider has authenticated. */
  | 'oidc'
  | 'pool'
  | 'batch'
  | 'agent'
  /** The control plane, for itself. */
  | 'system'
  /** A part of the control plane that is named: "system:discovery". */
  | 'part'
  /** The goal of a host. */
  | 'goal'
  /** The deletion of a host. */
  | 'deletion'
  /** The policy for the power of a host. */
  | 'policy'
  /** The making of a plan, which changes nothing. */
  | 'plan'
  | 'unknown';

/** The actors that have no name of their own. */
export const actors = {
  system: 'system' as Actor,
  goal: 'goal' as Actor,
  deletion: 'deletion' as Actor,
  policy: 'policy' as Actor,
  plan: 'plan' as Actor,
  agent: 'agent' as Actor,
  /** Nobody is known; not any caller. */
  unknown: '' as Actor,
} as const;

const kindsWithoutName: ReadonlyMap<string, ActorKind> = new Map([
  [actors.system, 'system'],
  [actors.goal, 'goal'],
  [actors.deletion, 'deletion'],
  [actors.policy, 'policy'],
  [actors.plan, 'plan'],
  [actors.agent, 'agent'],
]);

const batchPrefix = 'workflowBatches/';

const prefixes: readonly (readonly [string, ActorKind])[] = [
  ['user:', 'user'],
  ['token:', 'token'],
  ['oidc:', 'oidc'],
  ['agent:', 'agent'],
  ['system:', 'part'],
  ['pools/', 'pool'],
  [batchPrefix, 'batch'],
];

export function userActor(name: string): Actor {
  return `user:${name}` as Actor;
}

export function tokenActor(tokenId: TokenId): Actor {
  return `token:${tokenId}` as Actor;
}

export function oidcActor(subject: string): Actor {
  return `oidc:${subject}` as Actor;
}

export function agentActor(rack: RackName): Actor {
  return `agent:${rack}` as Actor;
}

/** A named part of the control plane. */
export function systemActor(part: 'discovery' | 'control plane'): Actor {
  return `system:${part}` as Actor;
}

export function poolActor(poolId: PoolId): Actor {
  return `pools/${poolId}` as Actor;
}

/** The actor in a field of a message or record; of kind `unknown` for a text of no other kind. */
export function readActor(text: string): Actor {
  return text as Actor;
}

export function actorKind(actor: Actor): ActorKind {
  const kind = kindsWithoutName.get(actor);
  if (kind !== undefined) return kind;
  return prefixes.find(([prefix]) => actor.startsWith(prefix))?.[1] ?? 'unknown';
}

/** A person or a program with a token; not a pool, a policy, or the system itself. */
export function isPerson(actor: Actor): boolean {
  const kind = actorKind(actor);
  return kind === 'user' || kind === 'token' || kind === 'oidc';
}

export function isPool(actor: Actor): boolean {
  return actorKind(actor) === 'pool';
}

/** Whether a pool made the claim. */
export function isPoolClaim({ by }: Pick<Claim, 'by'>): boolean {
  return isPool(readActor(by));
}

/** The control plane for itself, and none of its named parts. */
export function isSystem(actor: Actor): boolean {
  return actorKind(actor) === 'system';
}

/** Whether the field of a message or record names the control plane itself. */
export function isBySystem(text: string): boolean {
  return isSystem(readActor(text));
}

/** The batch that the actor is; undefined: it is none. */
export function batchOfActor(actor: Actor): BatchId | undefined {
  if (actorKind(actor) !== 'batch') return undefined;
  const id = actor.slice(batchPrefix.length);
  return isChosenId(id) ? asBatchId(id) : undefined;
}

/** The name behind the kind: "ann" of "user:ann"; the whole text where there is no colon. */
export function actorName(actor: Actor): string {
  return actor.slice(actor.indexOf(':') + 1);
}
