import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  ApiFailure,
  DeployProof,
  DeploySpecSchema,
  FirstBootFormat,
  HostGoal,
  HostState,
  ImageRegistrySchema,
  RootDiskHintsSchema,
  RunPhase,
  store as wire,
} from '@rackwright/messages';
import { VALUE_BYTES_MAX } from '@rackwright/store';
import { expect, test } from 'vitest';
import { Violations } from '../../call/violations.ts';
import { checkRegistries } from '../../rack/registries-spec.ts';
import { checkDeployment } from '../api/deploy-request.ts';
import { type Bench, bench, done, inspected, makeAvailable, verified } from '../testing/bench.ts';
import { checkDeploySpec } from './deploy-spec.ts';
import { checkRootDisk } from './root-disk.ts';

const { CONFIG_DRIVE, NONE } = FirstBootFormat;
const digest = `sha256:${'1'.repeat(64)}`;

/** Of no enum. */
const unknown = 9 as never;

/** "field description" of every violation. */
function violationsOf(check: (violations: Violations) => void): string[] {
  const violations = new Violations();
  try {
    check(violations);
    violations.throwIfAny();
    return [];
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.error.kind !== 'invalidArgument') throw error;
    return (error.error.violations ?? []).map(
      ({ field, description }) => `${field} ${description}`,
    );
  }
}

function problems(init: MessageInitShape<typeof DeploySpecSchema>): string[] {
  const deploy = create(DeploySpecSchema, init as object);
  return violationsOf((violations) => checkDeploySpec('deploy', deploy, violations));
}

function cloudConfig(text: string) {
  return { firstBoot: { userData: `#cloud-config\n${text}\n` } };
}

function metaOf(entries: number): Record<string, string> {
  const keys = Array.from({ length: entries }, (_, index) => `key${index}`);
  return Object.fromEntries(keys.map((key) => [key, 'm'.repeat(1024)]));
}

test('first-boot data is taken unchanged', () => {
  const network = 'version: 2\nethernets: {}\n';
  const cloud = { userData: '#cloud-config\npackages: [nginx]\n', networkConfig: network };
  expect(problems({ firstBoot: cloud })).toEqual([]);
  expect(problems({ firstBoot: { userData: '#!/bin/sh\ntrue\n' } })).toEqual([]);
  const ignition = { format: CONFIG_DRIVE, userData: '{"ignition": {"version": "3.4.0"}}' };
  expect(problems({ firstBoot: ignition })).toEqual([]);
  const none = { firstBoot: { format: NONE }, proof: DeployProof.POWER_ON };
  expect(problems(none)).toEqual([]);
  expect(problems({ keepDisks: ['S1'], proofTimeout: durationFromMs(60_000) })).toEqual([]);
});

test.for<[MessageInitShape<typeof DeploySpecSchema>, string]>([
  [{ firstBoot: { userData: 'x'.repeat(65_537) } }, 'user_data has 65537 bytes; at most 65536'],
  [{ firstBoot: { networkConfig: 'x'.repeat(16_385) } }, 'network_config has 16385 bytes'],
  [{ firstBoot: { networkConfig: 'version: 3' } }, '"version: 1" or "version: 2"'],
  [{ firstBoot: { userData: '#cloud-config\na: [' } }, 'user_data begins with "#cloud-config"'],
  [{ firstBoot: { userData: '#cloud-config\n- a\n' } }, 'is no mapping of names to values'],
  [{ firstBoot: { userData: '#cloud-config\nphone_home: {}\n' } }, 'has a phone_home of its own'],
  [cloudConfig('vendor_data: {enabled: false}'), 'user_data turns vendor_data off'],
  [cloudConfig('vendor_data: {enabled: "no"}'), 'user_data turns vendor_data off'],
  [{ firstBoot: { userData: '\n#Cloud-Config x\n{"phone_home": {}}' } }, 'has a phone_home of'],
  [cloudConfig('cloud_final_modules: [scripts-user]'), 'cloud_final_modules without phone_home'],
  [{ firstBoot: { userData: '{"ignition": {"version": "3"}}' } }, 'by the format config drive'],
  [
    { firstBoot: { format: CONFIG_DRIVE, userData: '{"ignition": {}}' } },
    'JSON without "ignition"',
  ],
  [{ firstBoot: { format: CONFIG_DRIVE, userData: '{' } }, 'is no JSON'],
  [
    { firstBoot: { format: CONFIG_DRIVE, networkConfig: 'version: 1' } },
    'which no config drive has',
  ],
  [{ firstBoot: { format: NONE } }, 'format is none: the image is not told where to phone home'],
  [{ firstBoot: { metaData: { 'instance-id': 'i' } } }, 'is always set by Rackwright'],
  [{ firstBoot: { format: unknown } }, 'first_boot.format is 9'],
  [{ proof: unknown }, 'deploy.proof is 9'],
  [{ proofTimeout: durationFromMs(59_000) }, 'proof_timeout must be from 1 minute to 24 hours'],
  [{ keepDisks: Array.from({ length: 65 }, (_, n) => `D${n}`) }, 'keep_disks names 65 disks'],
  [{ keepDisks: ['D1', 'D1'] }, 'keep_disks[1] repeats "D1"'],
  [{ netboot: true, keepDisks: ['D1'] }, 'keep_disks has disks, and netboot writes to none'],
  [{ netboot: true, firstBoot: { format: CONFIG_DRIVE } }, 'netboot writes to no disk'],
  [{ netboot: true, firstBoot: { userData: 'x'.repeat(9_000) } }, 'at most 8192 are taken'],
  [{ netboot: true, firstBoot: { metaData: metaOf(16) } }, 'at most 16384 of a host that boots'],
  [{ firstBoot: { userData: 'x'.repeat(65_536), metaData: metaOf(32) } }, 'deploy takes 98'],
])('a wrong deployment is refused by its field, with what would be right (%#)', ([init, text]) => {
  expect(problems(init).join('\n')).toContain(text);
});

test('data that keeps the proving call is taken, and any data if power is the proof', () => {
  for (const text of [
    'vendor_data: {enabled: true, prefix: [/usr/bin/env]}',
    'cloud_final_modules: [scripts-user, phone-home]',
    'cloud_final_modules: [[scripts-user, always], [phone_home, once]]',
  ]) {
    expect(problems(cloudConfig(text))).toEqual([]);
  }
  const proof = DeployProof.POWER_ON;
  for (const text of ['vendor_data: {enabled: false}', 'phone_home: {url: http://a/}']) {
    expect(problems({ ...cloudConfig(text), proof })).toEqual([]);
  }
});

/** As large as permitted, with another letter in its script. */
function largest(letter: string): MessageInitShape<typeof DeploySpecSchema> {
  const script = `#!${letter.repeat(65_534)}`;
  const networkConfig = `version: 2\n#${'x'.repeat(16_372)}`;
  return { firstBoot: { userData: script, networkConfig, metaData: metaOf(15) } };
}

test('the largest deployments fit into the record of their host, one in place of another', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  let bytes = 0;
  const look = () => {
    const now = toBinary(wire.HostRecordSchema, host.record).byteLength;
    bytes = Math.max(bytes, now);
    return now;
  };
  host.apply({ kind: 'tick' });
  host.report(verified());
  makeAvailable(host);
  const request = (kind: 'provision' | 'reimage', letter: string) => {
    expect(problems(largest(letter))).toEqual([]);
    const deploy = create(DeploySpecSchema, largest(letter) as object);
    host.request({ kind, image: `registry.example/os@sha256:${'1'.repeat(64)}`, deploy });
    for (let steps = 0; !hasEnded(host); steps += 1) {
      expect(steps, 'it ends').toBeLessThan(100);
      look();
      const step = stepAt(host);
      if (step === 'runner.await') host.runnerReady();
      else host.report(step === 'runner.inspect' ? inspected() : done);
    }
    return look();
  };
  expect(request('provision', 'a')).toBeGreaterThan(96_000);
  expect(host.record.host?.status?.state).toBe(HostState.PROVISIONED);
  host.request({ kind: 'claim', reason: 'mine' });
  // With one in the record, a run of the largest size still fits.
  expect(request('reimage', 'b')).toBeLessThan(VALUE_BYTES_MAX / 2);
  expect(host.record.host?.status?.deploy?.firstBoot?.userData).toContain('bbb');
  expect(bytes).toBeLessThan(VALUE_BYTES_MAX - 48 * 1024);
});

function hasEnded({ record }: Bench): boolean {
  return record.host?.status?.run?.phase === RunPhase.ENDED;
}

function stepAt({ record }: Bench): string {
  const run = record.host?.status?.run;
  return run?.steps[run.currentStep]?.name ?? '';
}

test.for<[string, string | undefined]>([
  [`registry.example/os@${digest}`, undefined],
  ['registry.example/os:1', undefined],
  [`https://files.example/os.raw#sha256=${'1'.repeat(64)}`, undefined],
  ['', 'is missing'],
  ['registry.example/os', 'names neither a tag nor a digest'],
  ['os:1', 'must begin with its registry'],
  ['https://files.example/os.raw', 'must end with the SHA-256'],
  [`https://me:pw@files.example/os.raw#sha256=${'1'.repeat(64)}`, 'holds a user or a password'],
])('the image "%s" is taken, or refused with what is wrong', ([image, text]) => {
  const found = violationsOf(() => checkDeployment({ image }));
  expect(found.join()).toContain(text ?? '');
  expect(found).toHaveLength(text === undefined ? 0 : 1);
});

test('hints at a root disk that can fit none are refused', () => {
  const of = (init: MessageInitShape<typeof RootDiskHintsSchema>) =>
    violationsOf((violations) => {
      checkRootDisk('root_disk', create(RootDiskHintsSchema, init as object), violations);
    }).join();
  expect(of({ serial: 'S1' })).toBe('');
  expect(of({ byPath: 'pci-0000:00:17.0-ata-1' })).toBe('');
  expect(of({ byPath: '../sda' })).toContain('by_path must be a name under /dev/disk/by-path');
  expect(of({ sizeBytes: 1n, minSizeBytes: 2n })).toContain('so that no disk fits');
  expect(of({})).toContain('says nothing');
});

test('registries are told apart, and no certificate of theirs is taken unread', () => {
  const of = (...inits: MessageInitShape<typeof ImageRegistrySchema>[]) =>
    violationsOf((violations) => {
      const registries = inits.map((init) => create(ImageRegistrySchema, init as object));
      checkRegistries('registries', registries, violations);
    }).join('\n');
  const good = { registry: 'registry.example', credential: 'credentials/c1', plainHttp: true };
  expect(of(good, { registry: 'localhost:5000' })).toBe('');
  expect(of(good, good)).toContain('registries[1].registry repeats "registry.example"');
  expect(of({ registry: 'registry' })).toContain('registries[0].registry is "registry"');
  expect(of({ ...good, credential: 'c1' })).toContain('registries[0].credential');
  expect(of({ ...good, caPem: 'x' })).toContain('plain HTTP shows no certificate');
  expect(of({ registry: 'r.example', caPem: 'x' })).toContain('must be certificates in PEM');
  const pem = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
  expect(of({ registry: 'r.example', caPem: pem })).toContain('cannot be read, the 1. of 1');
  const large = { registry: 'm.example', caPem: pem.repeat(300) };
  expect(of({ registry: 'r.example', mirrors: [large] })).toContain('at most 16384 are kept');
  const mirrors = [{ registry: 'r.example' }, { registry: 'm.example', prefix: 'A B' }];
  const told = of({ registry: 'r.example', mirrors });
  expect(told).toContain('mirrors[0].registry is the registry itself');
  expect(told).toContain('mirrors[1].prefix is "A B"');
});
