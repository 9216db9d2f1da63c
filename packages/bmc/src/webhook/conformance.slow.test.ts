import { describe, expect, test } from 'vitest';
import { type BmcRig, bmcConformance } from '../conformance/suite.ts';
import { clock, driverFor, password, relayCalls, startSwitch } from './rig.fixture.ts';

async function makeRig(plainHttp: boolean): Promise<BmcRig> {
  const start = (changes: Parameters<typeof startSwitch>[0] = {}) =>
    startSwitch({ plainHttp, ...changes });
  const devices = await Promise.all([
    start(),
    start({ fault: 'lying' }),
    start({ fault: 'silent' }),
    start({ delayMs: 800 }),
  ]);
  const [honest, lying, silent, slow] = devices;
  const calls = { ...relayCalls, plainHttp };
  return {
    honest: driverFor(honest, { calls }),
    wrongPassword: driverFor(honest, { calls, password: 'something else' }),
    silent: driverFor(silent, { calls }),
    lying: driverFor(lying, { calls }),
    slow: driverFor(slow, { calls }),
    identity: plainHttp ? {} : { certificateSha256: honest.certificateSha256 },
    lacks: new Set(['bootOverride', 'softOff'] as const),
    password,
    device: async () => ({
      power: honest.isOn() ? 'on' : 'off',
      bootDevice: 'none',
      switches: honest.switches(),
      softOffs: 0,
    }),
    nowMs: () => clock.suspendAwareMs(),
    close: async () => {
      await Promise.all(devices.map((device) => device.close()));
    },
  };
}

describe.each([
  ['HTTPS', false],
  ['plain HTTP', true],
] as const)('WebhookDriver by %s', (_name, plainHttp) => {
  for (const { name, run } of bmcConformance) {
    test(name, async () => {
      const rig = await makeRig(plainHttp);
      try {
        await run(rig);
      } finally {
        await rig.close();
      }
    });
  }
});

describe.each([
  ['HTTPS', false],
  ['plain HTTP', true],
] as const)('a device by %s that', (_name, plainHttp) => {
  const calls = { ...relayCalls, plainHttp };

  test.each([
    ['says neither on nor off', 'unknown', { kind: 'failed', type: 'malformed' }],
    ['redirects', 'redirect', { kind: 'failed', type: 'protocol' }],
    ['never ends its answer', 'endless', { kind: 'failed', type: 'protocol' }],
  ] as const)('%s is switched by nobody', async (_text, fault, expected) => {
    const device = await startSwitch({ plainHttp, fault });
    try {
      const driver = driverFor(device, { calls });
      expect(await driver.setPower('on')).toMatchObject(expected);
      expect(await driver.powerState()).toMatchObject(expected);
      expect(device.switches()).toBe(0);
      expect(device.calls().filter((call) => call.startsWith('POST'))).toEqual([]);
    } finally {
      await device.close();
    }
  });

  test.each([202, 302, 502, 'endless'] as const)(
    'answers an order by %s counts by what is read back',
    async (orderAnswer) => {
      const device = await startSwitch({ plainHttp, orderAnswer });
      const lying = await startSwitch({ plainHttp, orderAnswer, fault: 'lying' });
      try {
        const wanted = { calls: { ...calls, expectedStatus: 200 } };
        const taken = await driverFor(device, wanted).setPower('on');
        expect(taken).toMatchObject({ kind: 'ok', value: { changed: true } });
        expect(device.switches()).toBe(1);
        const refused = await driverFor(lying, wanted).setPower('on');
        expect(refused, 'the answer of the device').not.toMatchObject({ type: 'notApplied' });
        expect(refused.kind).not.toBe('ok');
      } finally {
        await device.close();
        await lying.close();
      }
    },
  );

  test('takes its secret by a header of its own', async () => {
    const device = await startSwitch({ plainHttp, header: 'x-api-key' });
    try {
      const driver = driverFor(device, { calls: { ...calls, secretHeader: 'X-Api-Key' } });
      expect(await driver.setPower('on')).toMatchObject({ kind: 'ok', value: { changed: true } });
      expect(device.isOn()).toBe(true);
    } finally {
      await device.close();
    }
  });
});

test('another certificate than the pinned one gets no secret', async () => {
  const device = await startSwitch();
  try {
    const driver = driverFor(device, { certificateSha256: '00'.repeat(32) });
    expect(await driver.powerState()).toMatchObject({ kind: 'failed', type: 'certificate' });
    expect(device.calls()).toEqual([]);
  } finally {
    await device.close();
  }
});

test('a name that leads to this machine gets no secret by plain HTTP', async () => {
  const device = await startSwitch({ plainHttp: true });
  try {
    const calls = { ...relayCalls, plainHttp: true };
    const driver = driverFor({ address: 'localhost', port: device.port }, { calls });
    expect(await driver.powerState()).toMatchObject({ kind: 'failed', type: 'address' });
    expect(device.calls()).toEqual([]);
  } finally {
    await device.close();
  }
});
