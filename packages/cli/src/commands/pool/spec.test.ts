import { expect, test } from 'vitest';
import { ioOver, runOver } from '../../command-io.fixture.ts';
import { type PoolFlags, poolFrom, poolOf } from './spec.ts';

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
    ...['spec.image', 'spec.rollout.max_unavailable', 'spec.rollout.soak', 'spec.rollout.windows'],
    ...['spec.rollout.gate.approval', 'spec.rollout.gate.deadline'],
    ...['spec.hosts.labels.`pool`', 'spec.pins.`hosts/h7`'],
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
  expect(paths).toEqual(['spec.rollout.windows', 'spec.pins']);
  expect([pool.spec?.pins, pool.spec?.rollout?.windows]).toEqual([{}, []]);
});

test('a wrong amount, window or duration is refused with its flag', () => {
  expect(() => poolOf('', { maxUnavailable: 'many' })).toThrow('--max-unavailable is "many"');
  expect(() => poolOf('', { window: ['at night'] })).toThrow('--window is "at night"');
  expect(() => poolOf('', { label: ['a=b', 'a-'] })).toThrow('--label both sets and removes a');
  expect(() => poolOf('', { soak: 'long' })).toThrow('--soak is "long"');
  expect(() => poolOf('', { gate: 'webhook' })).toThrow('--gate is "webhook"; it must be');
  expect(() => poolOf('', { gate: 'none', gateDeadline: '1h' })).toThrow('--gate none leaves');
  expect(() => poolOf('', { pin: ['h1'] })).toThrow('--pin is "h1"; it must be HOST=IMAGE');
  expect(() => poolOf('', { pin: ['h1=a@b'], unpin: ['h1'] })).toThrow('both name hosts/h1');
});

test('each command on pools says what it is for', async () => {
  const { out, code } = await runOver(['pool', '--help']);
  expect(code).toBe(0);
  for (const command of ['create', 'update', 'history', 'plan', 'approve', 'watch', 'explain']) {
    expect(out).toContain(command);
  }
});

test('a pool says in the same words as a host how its image is deployed', async () => {
  const { io } = ioOver({ files: { 'user.yaml': '#cloud-config\n' } });
  const flags = { userData: 'user.yaml', keepDisk: ['S1'], soak: '1m' };
  const { pool, paths } = await poolFrom(io, 'pools/web', flags);
  const deploy = ['spec.deploy.first_boot.user_data', 'spec.deploy.keep_disks'];
  expect(paths).toEqual(['spec.rollout.soak', ...deploy]);
  expect(pool.spec?.deploy).toMatchObject({
    firstBoot: { userData: '#cloud-config\n' },
    keepDisks: ['S1'],
  });
});

test('a gate may be a person, a webhook, or both', () => {
  const url = 'https://hooks.example/gate';
  const gateOf = (flags: PoolFlags) => poolOf('', flags).pool.spec?.rollout?.gate;
  expect(gateOf({ gateWebhook: url })).toMatchObject({ approval: false, webhookUrl: url });
  expect(gateOf({ gate: 'approval', gateWebhook: url })).toMatchObject({ approval: true });
  expect(gateOf({ gate: 'none' })).toBeUndefined();
});

test('a part of a selector or a gate that is not said is not among what is changed', () => {
  const pathsOf = (flags: PoolFlags) => poolOf('pools/web', flags).paths;
  expect(pathsOf({ rack: 'r1' })).toEqual(['spec.hosts.rack']);
  expect(pathsOf({ label: ['role=db', 'site-'] })).toEqual([
    'spec.hosts.labels.`role`',
    'spec.hosts.labels.`site`',
  ]);
  expect(pathsOf({ ownLabel: ['team=db', 'site-'] })).toEqual(['labels.`team`', 'labels.`site`']);
  expect(pathsOf({ gate: 'approval' })).toEqual(['spec.rollout.gate.approval']);
  expect(pathsOf({ gateWebhook: 'none' })).toEqual(['spec.rollout.gate.webhook_url']);
  expect(pathsOf({ gateDeadline: '8h' })).toEqual(['spec.rollout.gate.deadline']);
  expect(pathsOf({ gate: 'none' })).toEqual(['spec.rollout.gate']);
  expect(pathsOf({ unpin: ['h3'] })).toEqual(['spec.pins.`hosts/h3`']);
});

test('words take away what limits a pool', () => {
  const flags: PoolFlags = {
    ...{ host: ['none'], rack: 'none', label: ['none'], size: 'all', perRack: 'none' },
    ...{ maxUnavailable: 'none', failureThreshold: 'none', soak: 'none', gateDeadline: 'none' },
  };
  const { pool, paths } = poolOf('pools/web', flags);
  expect(paths).toEqual([
    ...['spec.hosts.names', 'spec.hosts.rack', 'spec.size'],
    ...['spec.rollout.max_unavailable', 'spec.rollout.max_unavailable_per_rack'],
    ...['spec.rollout.failure_threshold', 'spec.rollout.soak', 'spec.rollout.gate.deadline'],
    'spec.hosts.labels',
  ]);
  const { maxUnavailable, failureThreshold, soak, gate } = pool.spec?.rollout ?? {};
  expect([maxUnavailable, failureThreshold, soak, gate?.deadline]).toEqual(
    Array(4).fill(undefined),
  );
  expect(pool.spec?.hosts).toMatchObject({ names: [], rack: '', labels: {} });
  expect([pool.spec?.size, pool.spec?.rollout?.maxUnavailablePerRack]).toEqual([
    undefined,
    undefined,
  ]);
});
