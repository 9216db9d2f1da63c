import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { DeployProof, FirstBootFormat, WrittenDiskSchema } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { ioOver } from '../../command-io.fixture.ts';
import { deployText, rootDiskText, writtenText } from '../../output/deploy.ts';
import { type DeployFlags, deployFrom } from './deploy-spec.ts';
import { parseRootDisk } from './root-disk.ts';

const files = { 'user.yaml': '#cloud-config\n', 'net.yaml': 'version: 2\n', 'bad.bin': badText() };

function badText(): Uint8Array {
  return new Uint8Array([0xff, 0xfe]);
}

function read(flags: DeployFlags) {
  return deployFrom(ioOver({ files }).io, flags);
}

test('flags and their files become a deployment with the paths of the given fields', async () => {
  const { deploy, paths } = await read({
    ...{ userData: 'user.yaml', networkConfig: 'net.yaml', metaData: ['role=web'] },
    ...{ configDrive: true, keepDisk: ['S1', 'S2'], proof: 'power-on', proofTimeout: '30m' },
    ...{ grow: false, netboot: true },
  });
  expect(deploy).toMatchObject({
    firstBoot: {
      ...{ format: FirstBootFormat.CONFIG_DRIVE, userData: '#cloud-config\n' },
      ...{ networkConfig: 'version: 2\n', metaData: { role: 'web' } },
    },
    ...{ proof: DeployProof.POWER_ON, grow: false, netboot: true, keepDisks: ['S1', 'S2'] },
    proofTimeout: { seconds: 1_800n },
  });
  expect(paths).toEqual([
    ...['first_boot.format', 'first_boot.user_data', 'first_boot.network_config'],
    ...['first_boot.meta_data', 'proof', 'proof_timeout', 'grow', 'netboot', 'keep_disks'],
  ]);
  expect(deployText(deploy)).toBe(
    'config drive, user data of 14 bytes, network configuration of 11 bytes, meta data role; ' +
      'proved by power-on alone; booted over the network; not grown; never onto S1, S2',
  );
});

test('without flags no deployment is requested', async () => {
  expect((await read({})).paths).toEqual([]);
});

test('"none" takes a file or a list back', async () => {
  const { deploy, paths } = await read({ userData: 'none', keepDisk: ['none'] });
  expect(paths).toEqual(['first_boot.user_data', 'keep_disks']);
  expect(deploy).toMatchObject({ firstBoot: { userData: '' }, keepDisks: [] });
});

test.each([
  [{ firstBoot: false, userData: 'user.yaml' }, 'with --no-first-boot nobody reads'],
  [{ firstBoot: false, configDrive: true }, 'give --config-drive or --no-first-boot'],
  [{ userData: 'missing.yaml' }, 'there is no file missing.yaml'],
  [{ userData: 'bad.bin' }, 'bad.bin is no UTF-8 text'],
  [{ metaData: ['role'] }, '--meta-data is "role"; it must be NAME=VALUE'],
  [{ proofTimeout: 'soon' }, '--proof-timeout is "soon"; it must be like'],
] as const)('%o is refused with its flag', async (flags, text) => {
  await expect(read(flags)).rejects.toThrow(text);
});

test('hints of a root disk are read, shown, and lifted', () => {
  const hints = parseRootDisk(['serial=S1', 'rotational=no', 'min-size=480GB', 'size=1073741824']);
  expect(hints).toMatchObject({
    ...{ serial: 'S1', rotational: false },
    ...{ minSizeBytes: 480_000_000_000n, sizeBytes: 1_073_741_824n },
  });
  expect(rootDiskText(hints)).toBe('serial=S1, rotational=no, size=1073741824, at least 480 GB');
  expect(parseRootDisk(['none'])).toBeUndefined();
  expect(() => parseRootDisk(['serail=S1'])).toThrow('--root-disk knows no "serail"; there are');
  for (const size of ['big', '480GB']) {
    const text = `--root-disk size is "${size}"; it must be the exact number of bytes`;
    expect(() => parseRootDisk([`size=${size}`])).toThrow(text);
  }
  expect(() => parseRootDisk(['min-size=480Gb'])).toThrow('it must be a number of bytes, or with');
  expect(() => parseRootDisk(['rotational=1'])).toThrow('it must be yes or no');
});

test('a written disk is shown with what went wrong beside its image', () => {
  const whole = { disk: 'D1', whole: true, contentDigest: 'sha256:ab', grownBytes: 4_600_000n };
  const shown = (init: MessageInitShape<typeof WrittenDiskSchema>) =>
    writtenText(create(WrittenDiskSchema, init as object));
  expect(writtenText(undefined)).toBe('');
  expect(shown(whole)).toBe('D1: sha256:ab, grown by 4.6 MB');
  const troubles = { notGrown: 'it is no file system', bootEntryProblem: 'the store is full' };
  expect(shown({ ...whole, grownBytes: 0n, ...troubles })).toBe(
    'D1: sha256:ab, not grown: it is no file system, no boot entry: the store is full',
  );
  expect(shown({ disk: 'D1' })).toBe('D1: a part of an image, which does not boot');
});
