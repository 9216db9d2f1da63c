/** Looks at power on simulated time: production session, drivers and governor, BMCs in memory. */
import { create } from '@bufbuild/protobuf';
import {
  defaultGovernorLimits,
  defaultIpmitoolOptions,
  defaultReadBackTimings,
  defaultRedfishOptions,
} from '@rackwright/bmc';
import { type ImitatedBmc, imitatedBmc, imitatedIpmitool } from '@rackwright/bmc/conformance';
import { agent, HealthLevel, troubleWord } from '@rackwright/messages';
import type { Clock, Exec, HttpClient } from '@rackwright/platform';
import { quietLog } from '@rackwright/platform/testing';
import { describe, expect, test } from 'vitest';
import { createBmcDriver } from './bmc-drivers.ts';
import { createBmcDrivers } from './governed-bmcs.ts';
import { createExecutor } from './operations/executor.ts';
import { PowerSync } from './power-sync.ts';
import { defaultDispatcherLimits, noHandOffs, RunnerDispatcher } from './runner-gateway/index.ts';
import { testSigner } from './runner-gateway/testing.ts';
import { World } from './session/testing/world.ts';

const credential = { name: 'credentials/bmc', version: 1n, username: 'u', password: 'imitated' };
const guid = Uint8Array.from({ length: 16 }, (_, index) => index * 17);
const periodMs = 60_000;
const noHttp: HttpClient = {
  peer: () => {
    throw new Error('these BMCs speak no HTTP');
  },
};

interface Call {
  readonly atMs: number;
  readonly bmc: string;
  readonly switches: boolean;
}

/** An agent that looks at hosts u1, u2, … with one BMC each. */
class PowerSyncRig {
  readonly world = new World();
  readonly bmcs = new Map<string, ImitatedBmc>();
  readonly calls: Call[] = [];
  readonly inFlight = { now: 0, most: 0 };
  #orders: RunnerDispatcher | undefined;
  #powerSync: PowerSync | undefined;
  #generation = 0n;

  static async open(hosts: number): Promise<PowerSyncRig> {
    const self = new PowerSyncRig();
    for (let n = 1; n <= hosts; n++) self.bmcs.set(`10.0.0.${n}`, imitatedBmc());
    const { world } = self;
    world.powerReadings = ({ clock, random, log, session }) => {
      const config = {
        ipmitool: defaultIpmitoolOptions,
        redfish: defaultRedfishOptions,
        readBack: defaultReadBackTimings,
        governor: defaultGovernorLimits,
        firmware: 'bios',
      } as const;
      const exec = self.#exec(clock);
      const drivers = createBmcDrivers(
        config,
        { clock, exec, httpClient: noHttp, log },
        createBmcDriver,
      );
      const orders = (self.#orders = new RunnerDispatcher({
        ...{ clock, log: quietLog, signer: testSigner() },
        operationState: () => 'unknown',
        handOffs: noHandOffs,
        limits: defaultDispatcherLimits,
      }));
      const executor = createExecutor({ drivers, orders, clock, log });
      world.work = (operation, context) => executor.execute(operation, context);
      self.#powerSync = new PowerSync({ clock, random, log, drivers, session, orders });
      return self.#powerSync;
    };
    await world.bootAndConnect();
    world.controlPlane.send({ case: 'credentialValue', value: credential });
    return self;
  }

  get powerSync(): PowerSync {
    if (this.#powerSync === undefined) throw new Error('the agent has not been started');
    return this.#powerSync;
  }

  get orders(): RunnerDispatcher {
    if (this.#orders === undefined) throw new Error('the agent has not been started');
    return this.#orders;
  }

  bmc(n = 1): ImitatedBmc {
    const bmc = this.bmcs.get(`10.0.0.${n}`);
    if (bmc === undefined) throw new Error(`no BMC ${n}`);
    return bmc;
  }

  /** Sends the list of all hosts, or of the named ones. */
  async sync(
    fields: { periodMs?: number; hosts?: number[]; version?: bigint } = {},
  ): Promise<void> {
    this.#generation += 1n;
    const numbers = fields.hosts ?? [...this.bmcs.keys()].map((_, index) => index + 1);
    const credentialVersion = fields.version ?? 1n;
    const hosts = numbers.map((n) => ({
      hostUid: `u${n}`,
      hostName: `hosts/h${n}`,
      bmc: {
        address: `10.0.0.${n}`,
        credential: 'credentials/bmc',
        credentialVersion,
        protocol: 'ipmi',
      },
      expectedIdentity: { guid },
    }));
    const { periodMs: every = periodMs } = fields;
    const value = { generation: this.#generation, periodMs: every, hosts };
    this.world.controlPlane.send({ case: 'powerSync', value });
    await this.world.run(10);
  }

  run(rounds = 1): Promise<void> {
    return this.world.run(rounds * periodMs);
  }

  /** Returns the reports about a host without an operation, and forgets them. */
  told(uid = 'u1') {
    const all = this.world.controlPlane.facts.splice(0);
    return all.flatMap(({ hostUid, result }) => {
      if (hostUid !== uid || result.case !== 'hostUpdated') return [];
      const { poweredOn, bmcHealth } = result.value.observations ?? {};
      const cause = bmcHealth === undefined ? undefined : troubleWord(bmcHealth.trouble);
      return [{ on: poweredOn, reachable: bmcHealth?.reachable, cause }];
    });
  }

  digests(): agent.PowerDigest[] {
    return this.world.controlPlane.others.flatMap((message) =>
      message.case === 'powerDigest' ? [message.value] : [],
    );
  }

  #exec(clock: Clock): Exec {
    return {
      run: async (request, signal) => {
        const bmcAddress = request.args[request.args.indexOf('-H') + 1] ?? '';
        const bmc = this.bmcs.get(bmcAddress);
        if (bmc === undefined) throw new Error(`no BMC at ${bmcAddress}`);
        const text = request.args.join(' ');
        const switches = text.includes('raw 0x00 0x02') || text.includes('raw 0x00 0x08');
        this.calls.push({ atMs: this.world.clock.nowMs, bmc: bmcAddress, switches });
        this.inFlight.now += 1;
        this.inFlight.most = Math.max(this.inFlight.most, this.inFlight.now);
        try {
          return await imitatedIpmitool(clock, bmc).run(request, signal);
        } finally {
          this.inFlight.now -= 1;
        }
      },
    };
  }
}

const seenOff = { on: false, reachable: true, cause: 'none' };

describe('power sync', () => {
  test('reports the power of each host once, then only what changes', async () => {
    const rig = await PowerSyncRig.open(3);
    await rig.sync();
    await rig.run();
    expect(rig.told('u2')).toEqual([seenOff]);
    await rig.run(3);
    expect(rig.told('u2')).toEqual([]);
    rig.bmc(2).power = 'on';
    await rig.run();
    expect(rig.told('u2')).toEqual([{ on: true, reachable: undefined, cause: undefined }]);
    expect(rig.calls.some(({ switches }) => switches)).toBe(false);
  });

  test('reports what the BMC says of the hardware, and when that changes', async () => {
    const rig = await PowerSyncRig.open(1);
    const told = (): unknown[] =>
      rig.world.controlPlane.facts.splice(0).flatMap(({ result }) => {
        const found = result.case === 'hostUpdated' && result.value.observations?.hardwareHealth;
        return found ? [`${found.level} ${found.message}`] : [];
      });
    await rig.sync();
    await rig.run();
    expect(told()).toEqual([`${HealthLevel.OK} `]);
    rig.bmc().faults = [0, 0x08];
    await rig.run(2);
    expect(told()).toEqual([`${HealthLevel.CRITICAL} cooling or fan fault`]);
    rig.bmc().faults = [0, 0];
    await rig.run(2);
    expect(told()).toEqual([`${HealthLevel.OK} `]);
  });

  test('looks at once at a host that is said to boot, and not each time', async () => {
    const rig = await PowerSyncRig.open(2);
    await rig.sync();
    await rig.run();
    rig.told();
    rig.bmc(1).power = 'on';
    const { length } = rig.calls;
    for (let n = 0; n < 100; n += 1) rig.powerSync.readNow('u1');
    rig.powerSync.readNow('nobody');
    await rig.world.run(5_000);
    expect(rig.told()).toEqual([{ on: true, reachable: undefined, cause: undefined }]);
    const asked = rig.calls.slice(length).filter(({ bmc }) => bmc === '10.0.0.1');
    expect(asked.length).toBeLessThan(6);
  });

  test('spreads its looks over the period, a bounded number at once', async () => {
    const rig = await PowerSyncRig.open(40);
    await rig.sync();
    await rig.run();
    const first = new Map<string, number>();
    for (const { bmc, atMs } of rig.calls) if (!first.has(bmc)) first.set(bmc, atMs);
    const quarters = [0, 1, 2, 3].map(
      (quarter) => [...first.values()].filter((at) => Math.floor(at / 15_000) === quarter).length,
    );
    expect(first.size).toBe(40);
    for (const count of quarters) expect(count).toBeGreaterThan(4);
    for (const bmc of rig.bmcs.values()) bmc.silent = true;
    await rig.run(4);
    expect(rig.inFlight.most).toBeLessThanOrEqual(8);
  });

  test('closes each round with a digest of what it has read, and of nothing else', async () => {
    const rig = await PowerSyncRig.open(2);
    await rig.sync();
    rig.bmc(2).silent = true;
    await rig.run(2);
    const [digest] = rig.digests();
    expect(digest?.generation).toBe(1n);
    expect(digest?.hosts.map(({ hostUid, poweredOn }) => [hostUid, poweredOn])).toEqual([
      ['u1', false],
      ['u2', undefined],
    ]);
  });

  test('is switched off by a period of 0, and keeps to ten seconds at least', async () => {
    const rig = await PowerSyncRig.open(1);
    await rig.sync({ periodMs: 1 });
    await rig.world.run(60_000);
    expect(rig.digests().length).toBeLessThanOrEqual(6);
    await rig.sync({ periodMs: 0 });
    const { length } = rig.calls;
    await rig.run(3);
    expect(rig.calls).toHaveLength(length);
  });

  test('looks at no host that has left the list or was forgotten', async () => {
    const rig = await PowerSyncRig.open(2);
    await rig.sync();
    await rig.run();
    await rig.sync({ hosts: [1] });
    rig.world.controlPlane.send({ case: 'forget', value: { hostUid: 'u1' } });
    await rig.run();
    const { length } = rig.calls;
    await rig.sync();
    await rig.run();
    expect(rig.calls.slice(length).map(({ bmc }) => bmc)).not.toContain('10.0.0.1');
  });

  test('a host without its secret is not looked at', async () => {
    const rig = await PowerSyncRig.open(1);
    await rig.sync({ version: 2n });
    await rig.run(2);
    expect(rig.calls).toEqual([]);
  });

  test('reports everything again in a new session', async () => {
    const rig = await PowerSyncRig.open(1);
    await rig.sync();
    await rig.run();
    expect(rig.told()).toEqual([seenOff]);
    rig.world.controlPlane.cut();
    await rig.world.run(30_000);
    await rig.sync();
    await rig.run(2);
    expect(rig.told()).toEqual([seenOff]);
  });
});

describe('a BMC', () => {
  test('a silent BMC is told of after three looks, once, and when it answers again', async () => {
    const rig = await PowerSyncRig.open(1);
    await rig.sync();
    await rig.run();
    rig.told();
    rig.bmc().silent = true;
    await rig.run(2);
    expect(rig.told()).toEqual([]);
    await rig.run(20);
    expect(rig.told()).toEqual([{ on: undefined, reachable: false, cause: 'unreachable' }]);
    rig.bmc().silent = false;
    await rig.run(2);
    expect(rig.told()).toEqual([{ on: undefined, reachable: true, cause: 'none' }]);
  });

  test('a BMC that refuses the password is not asked again before there is another', async () => {
    const rig = await PowerSyncRig.open(1);
    rig.bmc().password = 'changed at the BMC';
    await rig.sync();
    await rig.run(30);
    expect(rig.calls).toHaveLength(1);
    expect(rig.told()).toEqual([{ on: undefined, reachable: true, cause: 'authentication' }]);
    const corrected = { ...credential, version: 2n, password: 'changed at the BMC' };
    rig.world.controlPlane.send({ case: 'credentialValue', value: corrected });
    await rig.sync({ version: 2n });
    await rig.run();
    expect(rig.told()).toEqual([seenOff]);
  });

  test('a BMC that says it is another machine tells no power', async () => {
    const rig = await PowerSyncRig.open(1);
    await rig.sync();
    await rig.run();
    rig.told();
    rig.bmc().guid = [...guid].toReversed();
    rig.bmc().power = 'on';
    await rig.run(2);
    expect(rig.told()).toEqual([{ on: undefined, reachable: true, cause: 'identityMismatch' }]);
    expect(rig.digests().at(-1)?.hosts[0]?.poweredOn).toBeUndefined();
  });

  test('a BMC that is another machine by now is found though its power is the same', async () => {
    const rig = await PowerSyncRig.open(1);
    await rig.sync();
    await rig.run();
    rig.told();
    rig.bmc().guid = [...guid].toReversed();
    await rig.run(12);
    expect(rig.told().at(0)?.cause).toBe('identityMismatch');
  });
});

describe('an operation', () => {
  const setPower = (rig: PowerSyncRig, id: string, on: boolean) => {
    const bmc = {
      address: '10.0.0.1',
      credential: 'credentials/bmc',
      credentialVersion: 1n,
      protocol: 'ipmi',
    };
    return rig.world.operation(id, {
      case: 'setPower',
      value: create(agent.SetPowerSchema, { bmc, on }),
    });
  };

  test('breaks off a look that is under way, and waits for nothing but the spacing', async () => {
    const rig = await PowerSyncRig.open(1);
    rig.bmc().silent = true;
    await rig.sync();
    while (rig.inFlight.now === 0) await rig.world.run(100);
    rig.bmc().silent = false;
    const startMs = rig.world.clock.nowMs;
    const before = rig.calls.length;
    rig.world.controlPlane.issue(setPower(rig, 'u1/1/0/1', true));
    await rig.world.run(1_000);
    const first = rig.calls.slice(before).at(0);
    expect((first?.atMs ?? Infinity) - startMs).toBeLessThan(600);
    await rig.world.run(10_000);
    expect(rig.world.controlPlane.outcome('u1/1/0/1')).toMatchObject({ kind: 'complete' });
  });

  test('keeps its host from being looked at while it may run', async () => {
    const rig = await PowerSyncRig.open(2);
    const { world } = rig;
    const { work } = world;
    world.work = async (operation, context, touch) => {
      if (operation.kind.case !== 'runStep') return work(operation, context, touch);
      await world.clock.sleep(10 * periodMs);
      return { kind: 'complete' };
    };
    await rig.sync();
    await rig.run();
    await world.issue(world.erase('u1/1/0/1'));
    const { length } = rig.calls;
    await rig.run(5);
    const seen = rig.calls.slice(length).map(({ bmc }) => bmc);
    expect(seen).not.toContain('10.0.0.1');
    expect(seen).toContain('10.0.0.2');
    expect(rig.digests().at(-1)?.hosts[0]?.poweredOn).toBeUndefined();
  });

  test('an operation whose runner is gone is interrupted once its host is seen off', async () => {
    const rig = await PowerSyncRig.open(1);
    const { world } = rig;
    world.work = (operation, context) => {
      if (operation.kind.case !== 'runStep') throw new Error('only steps are ordered here');
      const order = operation.kind;
      const { bootOperationId } = order.value;
      return rig.orders.run({ operation, bootOperationId, order }, context);
    };
    const link = {
      bootOperationId: 'u1/1/0/1-boot',
      hostUid: 'u1',
      unreceived: new Set<string>(),
      ...{ runnerSession: 's1', steps: [], rescue: false, architecture: '', imageEndpoint: '' },
      send: () => {},
      close: () => {},
    };
    rig.orders.attach(link);
    rig.bmc().power = 'on';
    await rig.sync();
    await world.issue(world.erase('u1/1/0/1'));
    rig.bmc().power = 'off';
    await rig.run(3);
    expect(world.controlPlane.outcome('u1/1/0/1')).toBeUndefined();
    expect(rig.calls).toEqual([]);
    rig.orders.detach(link);
    await rig.run(2);
    expect(world.controlPlane.outcome('u1/1/0/1')).toMatchObject({
      kind: 'failed',
      type: 'interrupted',
      message: 'the host was switched off while it was at work',
    });
    expect(rig.told()).toContainEqual(seenOff);
  });

  test('reports its result by itself; what is so afterwards is for the next look', async () => {
    const rig = await PowerSyncRig.open(1);
    await rig.sync();
    await rig.run();
    rig.told();
    await rig.world.issue(setPower(rig, 'u1/1/0/1', true), 5_000);
    expect(rig.bmc().power).toBe('on');
    expect(rig.told()).toEqual([]);
    await rig.run(2);
    expect(rig.told()).toEqual([{ on: true, reachable: true, cause: 'none' }]);
  });

  test('finds the breaker as it was: silent looks do not open it', async () => {
    const rig = await PowerSyncRig.open(1);
    rig.bmc().silent = true;
    await rig.sync();
    await rig.run(10);
    rig.bmc().silent = false;
    await rig.world.issue(setPower(rig, 'u1/1/0/1', false), 20_000);
    expect(rig.world.controlPlane.outcome('u1/1/0/1')).toMatchObject({ kind: 'complete' });
  });
});
