import { expect, test } from 'vitest';
import { runOver } from '../world.fixture.ts';
import { poolOf } from './pool-spec.ts';

test('flags become the fields that they name, and nothing else is changed', () => {
  const { pool, paths } = poolOf('pools/web', {
    image: 'registry.example/os:stable',
    label: ['pool=web'],
    maxUnavailable: '25%',
    soak: '10m',
    window: ['0 2 * * 6,0 for 4h in Europe/Berlin', '30 1 1 * * for 30m'],
    gate: 'approval',
    gateDeadline: '8h',
    pin: ['h7=registry.example/os@sha256:ab'],
  });
  expect(paths).toEqual([
    ...['spec.hosts', 'spec.image', 'spec.pins', 'spec.rollout.max_unavailable'],
    ...['spec.rollout.soak', 'spec.rollout.windows', 'spec.rollout.gate'],
  ]);
  const { rollout, pins } = pool.spec ?? {};
  expect(pins).toEqual({ 'hosts/h7': 'registry.example/os@sha256:ab' });
  expect(rollout?.maxUnavailable?.amount).toEqual({ case: 'percent', value: 25 });
  expect(rollout?.windows.map(({ cron, timeZone }) => [cron, timeZone])).toEqual([
    ['0 2 * * 6,0', 'Europe/Berlin'],
    ['30 1 1 * *', ''],
  ]);
  expect(rollout?.gate).toMatchObject({ approval: true, deadline: { seconds: 28_800n } });
});

test('one name takes windows or pins away', () => {
  const { pool, paths } = poolOf('pools/web', { window: ['none'], pin: ['none'] });
  expect(paths).toEqual(['spec.pins', 'spec.rollout.windows']);
  expect([pool.spec?.pins, pool.spec?.rollout?.windows]).toEqual([{}, []]);
});

test('what is no amount, window or duration is refused with its flag', () => {
  expect(() => poolOf('', { maxUnavailable: 'many' })).toThrow('--max-unavailable is "many"');
  expect(() => poolOf('', { window: ['at night'] })).toThrow('--window is "at night"');
  expect(() => poolOf('', { soak: 'long' })).toThrow('--soak is "long"');
  expect(() => poolOf('', { gateDeadline: '1h' })).toThrow('--gate-deadline needs --gate');
});

test('each command on pools says what it is for', async () => {
  const { out, code } = await runOver(['pool', '--help']);
  expect(code).toBe(0);
  for (const command of ['create', 'apply', 'history', 'plan', 'approve', 'watch', 'explain']) {
    expect(out).toContain(command);
  }
});

test('a file that is no pool is refused with its place', async () => {
  const connection = ['--server', 'cp:1', '--token-file', 't', '--ca-file', 'c'];
  const files = { t: 'token', c: 'ca', 'pool.yaml': 'name: pools/web\nspec: {imge: x}\n' };
  const ran = await runOver(['pool', 'apply', 'pool.yaml', ...connection], { files });
  expect(ran.err).toContain('pool.yaml is no pool');
  expect(ran.code).toBe(2);
});
