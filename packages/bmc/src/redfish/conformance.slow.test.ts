import { nodeHttpClient } from '@rackwright/platform/node';
import { describe, test } from 'vitest';
import { type BmcRig, bmcConformance } from '../conformance/suite.ts';
import { defaultRedfishOptions } from './parts.ts';
import {
  bootDevices,
  clock,
  driverFor,
  machineIdentity,
  password,
  startHost,
  user,
} from './rig.fixture.ts';

/** The device's own side, read past the driver: by a bare request with basic authentication. */
async function readSystem(address: string, port: number): Promise<Record<string, unknown>> {
  const target = { address, port, certificateSha256: undefined };
  const peer = nodeHttpClient().peer(target, defaultRedfishOptions.limits);
  const basic = Buffer.from(`${user}:${password}`).toString('base64');
  const headers = { authorization: `Basic ${basic}` };
  const answer = await peer.request({ method: 'GET', path: '/redfish/v1/Systems/1', headers });
  peer.close();
  if (answer.kind !== 'answered') throw new Error(answer.kind);
  return JSON.parse(Buffer.from(answer.body).toString());
}

async function makeRig(): Promise<BmcRig> {
  const [honest, lying, silent, slow] = await Promise.all([
    startHost(),
    startHost({ fault: { kind: 'yesButNothing' } }),
    startHost({ fault: { kind: 'silent', how: 'hang' } }),
    startHost({ habits: { powerDelayMs: [800, 800] } }),
  ]);
  const { serial, manufacturer, model, chassisSerial } = machineIdentity;
  return {
    honest: driverFor(honest.bmc),
    wrongPassword: driverFor(honest.bmc, { target: { password: 'something else' } }),
    silent: driverFor(silent.bmc),
    lying: driverFor(lying.bmc),
    slow: driverFor(slow.bmc),
    identity: {
      guidHex: machineIdentity.uuid.replaceAll('-', ''),
      manufacturer,
      product: model,
      serial,
      chassisSerial,
      certificateSha256: honest.bmc.certificateSha256,
    },
    password,
    device: async () => {
      const { address, port } = honest.bmc;
      const { Boot } = (await readSystem(address, port)) as { Boot: Record<string, string> };
      return {
        power: honest.isOn() ? 'on' : 'off',
        bootDevice: bootDevices[Boot['BootSourceOverrideTarget'] ?? ''] ?? 'none',
        switches: honest.bmc.switches(),
        softOffs: honest.bmc.softOffs(),
      };
    },
    nowMs: () => clock.suspendAwareMs(),
    close: async () => {
      await Promise.all([honest, lying, silent, slow].map(({ bmc }) => bmc.close()));
    },
  };
}

describe('RedfishDriver with the simulated BMC', () => {
  for (const { name, run } of bmcConformance) {
    test(name, async () => {
      const rig = await makeRig();
      try {
        await run(rig);
      } finally {
        await rig.close();
      }
    });
  }
});
