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
import { describe, expect, test } from 'vitest';
import { createBmcDrivers } from './bmc-drivers.ts';
import { createExecutor } from './operations/index.ts';
import { PowerSync } from './power-sync.ts';
import { defaultDeskLimits, noHandOffs, RunnerDesk } from './runner-gateway/index.ts';
import { quietLog, testSigner } from './runner-gateway/testing.ts';
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
class Looking {
  readonly world = new World();
  readonly bmcs = new Map<string, ImitatedBmc>();
  readonly calls: Call[] = [];
  readonly inFlight = { now: 0, most: 0 };
  #orders: RunnerDesk | undefined;
  #looks: PowerSync | undefined;
  #generation = 0n;

  static async open(hosts: number): Promise<Looking> {
    const self = new Looking();
    for (let n = 1; n <= hosts; n++) self.bmcs.set(`10.0.0.${n}`, imitatedBmc());
    const { world } = self;
    world.looks = ({ clock, random, log, session }) => {
      const config = {
        ipmitool: defaultIpmitoolOptions,
        redfish: defaultRedfishOptions,
        readBack: defaultReadBackTimings,
        governor: defaultGovernorLimits,
        firmware: 'bios',
      } as const;
      const exec = self.#exec(clock);
      const drivers = createBmcDrivers(config, { clock, exec, httpClient: noHttp, log });
      const orders = (self.#orders = new RunnerDesk({
        ...{ clock, log: quietLog, signer: testSigner() },
        operationState: () => 'unknown',
        handOffs: noHandOffs,
        limits: defaultDeskLimits,
      }));
      const executor = createExecutor({ drivers, orders, clock, log });
      world.work = (operation, context) => executor.execute(operation, context);
      self.#looks = new PowerSync({ clock, random, log, drivers, session, orders });
      return self.#looks;
    };
    await world.bootAndConnect();
    world.controlPlane.send({ case: 'credentialValue', value: credential });
    return self;
  }

  get looks(): PowerSync {
    if (this.#looks === undefined) throw new Error('the agent has not been started');
    return this.#looks;
  }

  get orders(): RunnerDesk {
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
        const words = request.args.join(' ');
        const switches = words.includes('raw 0x00 0x02') || words.includes('raw 0x00 0x08');
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
    const looking = await Looking.open(3);
    await looking.sync();
    await looking.run();
    expect(looking.told('u2')).toEqual([seenOff]);
    await looking.run(3);
    expect(looking.told('u2')).toEqual([]);
    looking.bmc(2).power = 'on';
    await looking.run();
    expect(looking.told('u2')).toEqual([{ on: true, reachable: undefined, cause: undefined }]);
    expect(looking.calls.some(({ switches }) => switches)).toBe(false);
  });

  test('reports what the BMC says of the hardware, and when that changes', async () => {
    const looking = await Looking.open(1);
    const told = (): unknown[] =>
      looking.world.controlPlane.facts.splice(0).flatMap(({ result }) => {
        const found = result.case === 'hostUpdated' && result.value.observations?.hardwareHealth;
        return found ? [`${found.level} ${found.message}`] : [];
      });
    await looking.sync();
    await looking.run();
    expect(told()).toEqual([`${HealthLevel.OK} `]);
    looking.bmc().faults = [0, 0x08];
    await looking.run(2);
    expect(told()).toEqual([`${HealthLevel.CRITICAL} cooling or fan fault`]);
    looking.bmc().faults = [0, 0];
    await looking.run(2);
    expect(told()).toEqual([`${HealthLevel.OK} `]);
  });

  test('looks at once at a host that is said to boot, and not each time', async () => {
    const looking = await Looking.open(2);
    await looking.sync();
    await looking.run();
    looking.told();
    looking.bmc(1).power = 'on';
    const { length } = looking.calls;
    for (let n = 0; n < 100; n += 1) looking.looks.readNow('u1');
    looking.looks.readNow('nobody');
    await looking.world.run(5_000);
    expect(looking.told()).toEqual([{ on: true, reachable: undefined, cause: undefined }]);
    const asked = looking.calls.slice(length).filter(({ bmc }) => bmc === '10.0.0.1');
    expect(asked.length).toBeLessThan(6);
  });

  test('spreads its looks over the period, a bounded number at once', async () => {
    const looking = await Looking.open(40);
    await looking.sync();
    await looking.run();
    const first = new Map<string, number>();
    for (const { bmc, atMs } of looking.calls) if (!first.has(bmc)) first.set(bmc, atMs);
    const quarters = [0, 1, 2, 3].map(
      (quarter) => [...first.values()].filter((at) => Math.floor(at / 15_000) === quarter).length,
    );
    expect(first.size).toBe(40);
    for (const count of quarters) expect(count).toBeGreaterThan(4);
    for (const bmc of looking.bmcs.values()) bmc.silent = true;
    await looking.run(4);
    expect(looking.inFlight.most).toBeLessThanOrEqual(8);
  });

  test('closes each round with a digest of what it has read, and of nothing else', async () => {
    const looking = await Looking.open(2);
    await looking.sync();
    looking.bmc(2).silent = true;
    await looking.run(2);
    const [digest] = looking.digests();
    expect(digest?.generation).toBe(1n);
    expect(digest?.hosts.map(({ hostUid, poweredOn }) => [hostUid, poweredOn])).toEqual([
      ['u1', false],
      ['u2', undefined],
    ]);
  });

  test('is switched off by a period of 0, and keeps to ten seconds at least', async () => {
    const looking = await Looking.open(1);
    await looking.sync({ periodMs: 1 });
    await looking.world.run(60_000);
    expect(looking.digests().length).toBeLessThanOrEqual(6);
    await looking.sync({ periodMs: 0 });
    const { length } = looking.calls;
    await looking.run(3);
    expect(looking.calls).toHaveLength(length);
  });

  test('looks at no host that has left the list or was forgotten', async () => {
    const looking = await Looking.open(2);
    await looking.sync();
    await looking.run();
    await looking.sync({ hosts: [1] });
    looking.world.controlPlane.send({ case: 'forget', value: { hostUid: 'u1' } });
    await looking.run();
    const { length } = looking.calls;
    await looking.sync();
    await looking.run();
    expect(looking.calls.slice(length).map(({ bmc }) => bmc)).not.toContain('10.0.0.1');
  });

  test('a host without its secret is not looked at', async () => {
    const looking = await Looking.open(1);
    await looking.sync({ version: 2n });
    await looking.run(2);
    expect(looking.calls).toEqual([]);
  });

  test('reports everything again in a new session', async () => {
    const looking = await Looking.open(1);
    await looking.sync();
    await looking.run();
    expect(looking.told()).toEqual([seenOff]);
    looking.world.controlPlane.cut();
    await looking.world.run(30_000);
    await looking.sync();
    await looking.run(2);
    expect(looking.told()).toEqual([seenOff]);
  });
});

describe('a BMC', () => {
  test('a silent BMC is told of after three looks, once, and when it answers again', async () => {
    const looking = await Looking.open(1);
    await looking.sync();
    await looking.run();
    looking.told();
    looking.bmc().silent = true;
    await looking.run(2);
    expect(looking.told()).toEqual([]);
    await looking.run(20);
    expect(looking.told()).toEqual([{ on: undefined, reachable: false, cause: 'unreachable' }]);
    looking.bmc().silent = false;
    await looking.run(2);
    expect(looking.told()).toEqual([{ on: undefined, reachable: true, cause: 'none' }]);
  });

  test('a BMC that refuses the password is not asked again before there is another', async () => {
    const looking = await Looking.open(1);
    looking.bmc().password = 'changed at the BMC';
    await looking.sync();
    await looking.run(30);
    expect(looking.calls).toHaveLength(1);
    expect(looking.told()).toEqual([{ on: undefined, reachable: true, cause: 'authentication' }]);
    const corrected = { ...credential, version: 2n, password: 'changed at the BMC' };
    looking.world.controlPlane.send({ case: 'credentialValue', value: corrected });
    await looking.sync({ version: 2n });
    await looking.run();
    expect(looking.told()).toEqual([seenOff]);
  });

  test('a BMC that says it is another machine tells no power', async () => {
    const looking = await Looking.open(1);
    await looking.sync();
    await looking.run();
    looking.told();
    looking.bmc().guid = [...guid].toReversed();
    looking.bmc().power = 'on';
    await looking.run(2);
    expect(looking.told()).toEqual([{ on: undefined, reachable: true, cause: 'identityMismatch' }]);
    expect(looking.digests().at(-1)?.hosts[0]?.poweredOn).toBeUndefined();
  });

  test('a BMC that is another machine by now is found though its power is the same', async () => {
    const looking = await Looking.open(1);
    await looking.sync();
    await looking.run();
    looking.told();
    looking.bmc().guid = [...guid].toReversed();
    await looking.run(12);
    expect(looking.told().at(0)?.cause).toBe('identityMismatch');
  });
});

describe('an operation', () => {
  const setPower = (looking: Looking, id: string, on: boolean) => {
    const bmc = {
      address: '10.0.0.1',
      credential: 'credentials/bmc',
      credentialVersion: 1n,
      protocol: 'ipmi',
    };
    return looking.world.operation(id, {
      case: 'setPower',
      value: create(agent.SetPowerSchema, { bmc, on }),
    });
  };

  test('breaks off a look that is under way, and waits for nothing but the spacing', async () => {
    const looking = await Looking.open(1);
    looking.bmc().silent = true;
    await looking.sync();
    while (looking.inFlight.now === 0) await looking.world.run(100);
    looking.bmc().silent = false;
    const startMs = looking.world.clock.nowMs;
    const before = looking.calls.length;
    looking.world.controlPlane.issue(setPower(looking, 'u1/1/0/1', true));
    await looking.world.run(1_000);
    const first = looking.calls.slice(before).at(0);
    expect((first?.atMs ?? Infinity) - startMs).toBeLessThan(600);
    await looking.world.run(10_000);
    expect(looking.world.controlPlane.outcome('u1/1/0/1')).toMatchObject({ kind: 'complete' });
  });

  test('keeps its host from being looked at while it may run', async () => {
    const looking = await Looking.open(2);
    const { world } = looking;
    const { work } = world;
    world.work = async (operation, context, touch) => {
      if (operation.kind.case !== 'runStep') return work(operation, context, touch);
      await world.clock.sleep(10 * periodMs);
      return { kind: 'complete' };
    };
    await looking.sync();
    await looking.run();
    await world.issue(world.erase('u1/1/0/1'));
    const { length } = looking.calls;
    await looking.run(5);
    const seen = looking.calls.slice(length).map(({ bmc }) => bmc);
    expect(seen).not.toContain('10.0.0.1');
    expect(seen).toContain('10.0.0.2');
    expect(looking.digests().at(-1)?.hosts[0]?.poweredOn).toBeUndefined();
  });

  test('an operation whose runner is gone is interrupted once its host is seen off', async () => {
    const looking = await Looking.open(1);
    const { world } = looking;
    world.work = (operation, context) => {
      if (operation.kind.case !== 'runStep') throw new Error('only steps are ordered here');
      const order = operation.kind;
      const { bootOperationId } = order.value;
      return looking.orders.run({ operation, bootOperationId, order }, context);
    };
    const link = {
      bootOperationId: 'u1/1/0/1-boot',
      hostUid: 'u1',
      unreceived: new Set<string>(),
      ...{ runnerSession: 's1', steps: [], rescue: false, architecture: '', imageEndpoint: '' },
      send: () => {},
      close: () => {},
    };
    looking.orders.attach(link);
    looking.bmc().power = 'on';
    await looking.sync();
    await world.issue(world.erase('u1/1/0/1'));
    looking.bmc().power = 'off';
    await looking.run(3);
    expect(world.controlPlane.outcome('u1/1/0/1')).toBeUndefined();
    expect(looking.calls).toEqual([]);
    looking.orders.detach(link);
    await looking.run(2);
    expect(world.controlPlane.outcome('u1/1/0/1')).toMatchObject({
      kind: 'failed',
      type: 'interrupted',
      message: 'the host was switched off while it was at work',
    });
    expect(looking.told()).toContainEqual(seenOff);
  });

  test('reports its result by itself; what is so afterwards is for the next look', async () => {
    const looking = await Looking.open(1);
    await looking.sync();
    await looking.run();
    looking.told();
    await looking.world.issue(setPower(looking, 'u1/1/0/1', true), 5_000);
    expect(looking.bmc().power).toBe('on');
    expect(looking.told()).toEqual([]);
    await looking.run(2);
    expect(looking.told()).toEqual([{ on: true, reachable: true, cause: 'none' }]);
  });

  test('finds the breaker as it was: silent looks do not open it', async () => {
    const looking = await Looking.open(1);
    looking.bmc().silent = true;
    await looking.sync();
    await looking.run(10);
    looking.bmc().silent = false;
    await looking.world.issue(setPower(looking, 'u1/1/0/1', false), 20_000);
    expect(looking.world.controlPlane.outcome('u1/1/0/1')).toMatchObject({ kind: 'complete' });
  });
});
