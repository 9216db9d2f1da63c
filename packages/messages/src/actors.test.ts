import { expect, test } from 'vitest';
import {
  actorKind,
  actorName,
  actors,
  agentActor,
  batchOfActor,
  isPerson,
  isPool,
  isSystem,
  oidcActor,
  poolActor,
  readActor,
  systemActor,
  tokenActor,
  userActor,
} from './actors.ts';
import { asPoolId, asTokenId } from './ids.ts';

const byKind = [
  ['user', userActor('ann'), 'user:ann'],
  ['token', tokenActor(asTokenId('ci')), 'token:ci'],
  ['oidc', oidcActor('https://sso#ann'), 'oidc:https://sso#ann'],
  ['agent', agentActor('racks/r1'), 'agent:racks/r1'],
  ['agent', actors.agent, 'agent'],
  ['part', systemActor('discovery'), 'system:discovery'],
  ['system', actors.system, 'system'],
  ['pool', poolActor(asPoolId('p')), 'pools/p'],
  ['batch', readActor('workflowBatches/b'), 'workflowBatches/b'],
  ['goal', actors.goal, 'goal'],
  ['deletion', actors.deletion, 'deletion'],
  ['policy', actors.policy, 'policy'],
  ['plan', actors.plan, 'plan'],
  ['unknown', actors.unknown, ''],
] as const;

test.each(byKind)('an actor of the kind %s is %j, whose text is %j', (kind, actor, text) => {
  expect(actor).toBe(text);
  expect(actorKind(readActor(text))).toBe(kind);
});

test('an actor with a text of no known kind is unknown and has no rights', () => {
  for (const text of ['ann', 'user', 'systems', 'goal:x', 'my pools/p', 'hosts/h1']) {
    const actor = readActor(text);
    expect([text, actorKind(actor)]).toEqual([text, 'unknown']);
    expect([isPerson(actor), isPool(actor), isSystem(actor)]).toEqual([false, false, false]);
  }
});

test('a person is who has an account or a token, and nobody whose name only holds the word', () => {
  for (const [kind, actor] of byKind) {
    expect([kind, isPerson(actor)]).toEqual([kind, ['user', 'token', 'oidc'].includes(kind)]);
  }
  expect(isPerson(readActor('pools/user:ann'))).toBe(false);
});

test('an actor names a batch only where a batch can have that id', () => {
  expect(batchOfActor(readActor('workflowBatches/set-clocks'))).toBe('set-clocks');
  for (const text of ['workflowBatches/', 'workflowBatches/A', 'workflowBatches/a/b', 'user:a']) {
    expect(batchOfActor(readActor(text))).toBeUndefined();
  }
});

test('the name of an actor stands behind its kind', () => {
  expect(
    ['user:ann', 'agent:racks/r1', 'user:a:b', 'system'].map(readActor).map(actorName),
  ).toEqual(['ann', 'racks/r1', 'a:b', 'system']);
});
