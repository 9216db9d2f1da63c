import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  asRunNumber,
  DeployProof,
  type DeploySpecSchema,
  deploymentIdOf,
  FirstBootFormat,
} from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import { expect, test } from 'vitest';
import { firstBootOf } from './first-boot.ts';

const url = 'http://10.0.0.1/phone-home/u-7/token';

function read(deploy?: MessageInitShape<typeof DeploySpecSchema>, phoneHomeUrl = url) {
  const id = { id: deploymentIdOf('u', asRunNumber(7)), hostName: 'h1' };
  const deployment = create(agent.DeploymentSchema, deploy === undefined ? id : { ...id, deploy });
  return firstBootOf(deployment, phoneHomeUrl);
}

test('by default cloud-init phones home, beside the data of the user', () => {
  expect(read()).toMatchObject({ value: { kind: 'noCloud', userData: '' } });
  const user = '#!/bin/sh\nexit\n';
  const seed = read({
    firstBoot: { userData: user, metaData: { a: 'b' }, networkConfig: 'version: 2' },
  });
  expect(seed).toMatchObject({ value: { userData: user, networkConfig: 'version: 2' } });
  const { metaData, vendorData } = (seed as { value: Record<string, string> }).value;
  expect(JSON.parse(metaData ?? '')).toEqual({
    a: 'b',
    'instance-id': 'u/7',
    'local-hostname': 'h1',
  });
  expect(vendorData).toMatch(/^#cloud-config\n/);
  expect(JSON.parse(vendorData?.replace('#cloud-config', '') ?? '')).toMatchObject({
    phone_home: { url, post: ['instance_id', 'hostname', 'fqdn'] },
  });
});

test('a config drive gets the same in its own form, and Ignition unchanged', () => {
  const user = '{"ignition": {"version": "3.4.0"}}';
  const format = FirstBootFormat.CONFIG_DRIVE;
  const seed = read({ firstBoot: { format, userData: user, metaData: { a: 'b' } } });
  expect(seed).toMatchObject({ value: { kind: 'configDrive', userData: user } });
  const { metaData, vendorData } = (seed as { value: Record<string, string> }).value;
  expect(JSON.parse(metaData ?? '')).toEqual({
    ...{ uuid: 'u/7', name: 'h1', hostname: 'h1' },
    ...{ meta: { a: 'b' }, phone_home_url: url },
  });
  expect(JSON.parse(vendorData ?? '')['cloud-init']).toContain(url);
});

test('the seed asks for no call if power is the proof', () => {
  const proof = DeployProof.POWER_ON;
  for (const format of [FirstBootFormat.NO_CLOUD, FirstBootFormat.CONFIG_DRIVE]) {
    const seed = read({ proof, firstBoot: { format } }, '');
    expect(seed.kind).toBe('value');
    expect(JSON.stringify(seed)).not.toContain('phone');
  }
  const none = { proof, firstBoot: { format: FirstBootFormat.NONE } };
  expect(read(none)).toEqual({ kind: 'value', value: undefined });
});

const networkConfig = 'version: 2';
const ownCall = '#cloud-config\npackages: [x]\nphone_home: {url: http://x}\n';
const ownCallInJson = '#cloud-config\n{"phone_home": {"url": "http://x"}}';

test.for<[string, MessageInitShape<typeof DeploySpecSchema>]>([
  ['the proof POWER_ON', { firstBoot: { format: FirstBootFormat.NONE } }],
  ['its phone_home would take the place', { firstBoot: { userData: ownCall } }],
  ['its phone_home would take the place', { firstBoot: { userData: ownCallInJson } }],
  ['instance-id is set by us', { firstBoot: { metaData: { 'instance-id': 'x' } } }],
  ['network_config', { firstBoot: { format: FirstBootFormat.CONFIG_DRIVE, networkConfig } }],
  ['deploy.first_boot.format: 9', { firstBoot: { format: 9 as FirstBootFormat } }],
  ['deploy.proof: 9', { proof: 9 as DeployProof }],
])('a seed that cannot carry its data or the call is refused as "%s"', ([text, deploy]) => {
  expect(read(deploy)).toEqual({ kind: 'bad', problem: expect.stringContaining(text) });
});
