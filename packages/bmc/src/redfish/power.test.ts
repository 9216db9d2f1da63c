/** Orders about power to a BMC that shows a state on its way. */
import type { HttpClient, HttpsOutcome, HttpsRequest } from '@rackwright/platform';
import { describe, expect, test } from 'vitest';
import { basics, serviceOf } from './canned.fixture.ts';
import { driverFor } from './rig.fixture.ts';

const readBack = { windowMs: 30, pollMs: 1 };
const resetPath = '/s/1/reset';
const Actions = { '#ComputerSystem.Reset': { target: resetPath } };

/** A system that reads as these words, one after the other; the last one stays. */
function systemThatReads(words: readonly string[], answerToOrder?: HttpsOutcome) {
  const answers = { ...basics, [`POST ${resetPath}`]: { status: 204 } };
  const { client } = serviceOf(answers);
  const left = [...words];
  const orders: string[] = [];
  const telling: HttpClient = {
    peer: (...to) => {
      const peer = client.peer(...to);
      const request = async (one: HttpsRequest): Promise<HttpsOutcome> => {
        if (one.path === '/s/1') {
          const PowerState = left.length > 1 ? left.shift() : left[0];
          const body = { PowerState, Actions };
          return serviceOf({ 'GET /s/1': { body } })
            .client.peer(...to)
            .request(one);
        }
        if (one.path !== resetPath) return peer.request(one);
        orders.push(JSON.parse(one.body ?? '{}').ResetType);
        return answerToOrder ?? (await peer.request(one));
      };
      return { ...peer, request };
    },
  };
  const parts = { client: telling, readBack };
  return { orders, driver: driverFor({ address: '192.0.2.1', port: 443 }, { parts }) };
}

const changed = { kind: 'ok', value: { changed: true, notes: [] } };
const busy = { kind: 'transient', reason: 'busy' };
const lost = { kind: 'timedOut', message: 'no answer', mayHaveArrived: true } as const;

describe('a system that is being switched on', () => {
  test('is switched off by an order, and not called off before it is', async () => {
    const { driver, orders } = systemThatReads(['PoweringOn', 'PoweringOn', 'PoweringOn', 'Off']);
    expect(await driver.setPower('off')).toEqual(changed);
    expect(orders).toEqual(['ForceOff']);
  });

  test('is not off when it goes on after all', async () => {
    const { driver, orders } = systemThatReads(['PoweringOn', 'PoweringOn', 'On']);
    expect(await driver.setPower('off')).toMatchObject({ type: 'notApplied' });
    expect(orders).toEqual(['ForceOff']);
  });

  test('is not asked to shut down, and was not off', async () => {
    const { driver, orders } = systemThatReads(['PoweringOn']);
    expect(await driver.softOff()).toMatchObject(busy);
    expect(orders).toEqual([]);
  });
});

describe('a system that is being switched off', () => {
  test('is switched on once it is off', async () => {
    const { driver, orders } = systemThatReads(['PoweringOff', 'PoweringOff', 'Off', 'Off', 'On']);
    expect(await driver.setPower('on')).toEqual(changed);
    expect(orders).toEqual(['On']);
  });

  test('is busy while it never is off', async () => {
    const { driver, orders } = systemThatReads(['PoweringOff']);
    expect(await driver.setPower('on')).toMatchObject(busy);
    expect(orders).toEqual([]);
  });

  test('counts as asked to shut down', async () => {
    const { driver, orders } = systemThatReads(['PoweringOff']);
    expect(await driver.softOff()).toEqual({ kind: 'ok', value: { wasRequested: true } });
    expect(orders).toEqual([]);
  });
});

test.each(['Off', 'PoweringOff'])(
  'a soft off whose answer is lost counts as asked when the system reads %s then',
  async (word) => {
    const { driver, orders } = systemThatReads(['On', 'On', word], lost);
    expect(await driver.softOff()).toEqual({ kind: 'ok', value: { wasRequested: true } });
    expect(orders).toEqual(['GracefulShutdown']);
  },
);

test('a soft off whose answer is lost is open while the system stays on', async () => {
  const { driver } = systemThatReads(['On'], lost);
  expect(await driver.softOff()).toMatchObject({ kind: 'transient', reason: 'unreachable' });
});
