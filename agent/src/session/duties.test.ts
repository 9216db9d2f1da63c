/** What the session does beside operations: secrets, grants, forgetting, facts. */
import { type BmcResult, defaultGovernorLimits, failed, Governor } from '@rackwright/bmc';
import { asIncarnation, type OperationId } from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import type { Executor } from './executor.ts';
import { journalPath, snapshotPath, World } from './testing/world.ts';

const password = 'correct horse battery';

async function connected(): Promise<World> {
  const world = new World();
  await world.bootAndConnect();
  return world;
}

function sendCredential(world: World, version: bigint, text = password): void {
  const value = { name: 'credentials/bmc', version, username: 'admin', password: text };
  world.controlPlane.send({ case: 'credentialValue', value });
}

describe('credentials', () => {
  /** Work that fetches the secret and notes the result. */
  function asking(world: World, version: bigint): string[] {
    const got: string[] = [];
    world.work = async (_operation, context) => {
      const credential = await context.credential('credentials/bmc', version);
      got.push(`${credential.version} ${credential.username} ${credential.password}`);
      return { kind: 'complete' };
    };
    return got;
  }

  test('are waited for, and a newer version serves as well', async () => {
    const world = await connected();
    const got = asking(world, 2n);
    await world.issue(world.verify('h/1/1/1'), 1000);
    sendCredential(world, 1n, 'old');
    await world.run(1000);
    expect(got).toEqual([]);
    sendCredential(world, 3n);
    await world.run(100);
    sendCredential(world, 2n, 'late');
    await world.issue(world.verify('h/1/1/2'));
    expect(got).toEqual([`3 admin ${password}`, `3 admin ${password}`]);
  });

  test('credentials of another store, or of an older accepted one, count again', async () => {
    const world = await connected();
    const { controlPlane } = world;
    const got = asking(world, 1n);
    sendCredential(world, 5n, 'of the first');
    await world.issue(world.verify('h/1/1/1'));
    controlPlane.incarnation = asIncarnation('incarnation-2');
    controlPlane.cut();
    await world.run(31_000);
    sendCredential(world, 4n, 'of the second');
    await world.issue(world.verify('h/1/1/2'));
    const { incarnation, revision } = controlPlane;
    controlPlane.send({ case: 'storeAccepted', value: { incarnation, revision, by: 'user:ann' } });
    await world.run(31_000);
    sendCredential(world, 3n, 'of the older copy');
    await world.issue(world.verify('h/1/1/3'));
    expect(got).toEqual([
      '5 admin of the first',
      '4 admin of the second',
      '3 admin of the older copy',
    ]);
  });

  test('passwords of another or an accepted store are not refused as old ones', async () => {
    const world = await connected();
    const { controlPlane } = world;
    const governor = new Governor(world.clock.open().clock, defaultGovernorLimits, () => {});
    world.credentialsStartedOver = () => governor.startOver();
    const answers: string[] = [];
    const present = async (id: string, { isRight }: { readonly isRight: boolean }) => {
      const act = async (): Promise<BmcResult<string>> =>
        isRight ? { kind: 'ok', value: 'let in' } : failed('authentication', 'wrong');
      world.work = async () => {
        const result = await governor.run('credentials/bmc@5', act, { restMs: 0 });
        answers.push(result.kind === 'ok' ? result.value : result.message);
        return { kind: 'complete' };
      };
      await world.issue(world.verify(id));
    };
    const refuse = async (run: number) => {
      for (const step of [1, 2]) await present(`h/${run}/${step}/1`, { isRight: false });
      await present(`h/${run}/3/1`, { isRight: true });
      expect(answers.pop()).toContain('is not presented again');
    };
    await refuse(1);
    controlPlane.cut();
    await world.run(31_000);
    await present('h/2/1/1', { isRight: true });
    expect(answers.pop()).toContain('is not presented again');
    controlPlane.incarnation = asIncarnation('incarnation-2');
    controlPlane.cut();
    await world.run(31_000);
    await present('h/3/1/1', { isRight: true });
    expect(answers.pop()).toBe('let in');
    await refuse(4);
    const { incarnation, revision } = controlPlane;
    controlPlane.send({ case: 'storeAccepted', value: { incarnation, revision, by: 'user:ann' } });
    await world.run(31_000);
    await present('h/5/1/1', { isRight: true });
    expect(answers.pop()).toBe('let in');
  });

  test('credentials that do not come end the attempt with retryAfter', async () => {
    const world = await connected();
    asking(world, 1n);
    await world.issue(world.verify('h/1/1/1'), 31_000);
    expect(world.controlPlane.outcome('h/1/1/1')).toMatchObject({
      kind: 'retryAfter',
      reason: 'notReady',
    });
  });

  test('do not hold up a cancel', async () => {
    const world = await connected();
    asking(world, 1n);
    await world.issue(world.verify('h/1/1/1'));
    await world.issue(world.cancel('h/1/1/cancel', 'h/1/1/1'));
    expect(world.controlPlane.outcome('h/1/1/1')).toMatchObject({ type: 'cancelled' });
  });

  test('never reach the disk or the log, and end with the agent', async () => {
    const world = await connected();
    const got = asking(world, 1n);
    sendCredential(world, 1n);
    await world.issue(world.verify('h/1/1/1'));
    expect(got).toHaveLength(1);
    for (const path of [journalPath, snapshotPath]) {
      const text = Buffer.from(world.disk.bytes(path) ?? []).toString('latin1');
      expect(text).not.toContain(password);
    }
    expect(world.logged.join('\n')).not.toContain(password);
    await world.restart();
    await world.issue(world.verify('h/1/1/2'));
    expect(got).toHaveLength(1);
  });

  test('are dropped with the last host that uses them', async () => {
    const world = await connected();
    const got = asking(world, 1n);
    sendCredential(world, 1n);
    await world.issue(world.verify('a/1/1/1'));
    await world.issue(world.verify('b/1/1/1'));
    world.controlPlane.send({ case: 'forget', value: { hostUid: 'a' } });
    await world.issue(world.verify('b/1/1/2'));
    expect(got).toHaveLength(3);
    world.controlPlane.send({ case: 'forget', value: { hostUid: 'b' } });
    await world.issue(world.verify('c/1/1/1'));
    expect(got).toHaveLength(3);
  });
});

describe('boot grants', () => {
  const macs = ['52:54:00:00:00:01'];

  /** A test setup in which SetPower opens the grant of its host. */
  async function granting(): Promise<World> {
    const world = await connected();
    world.work = async (_operation, context, touch) => {
      await context.begin();
      const expiresAtMs = world.clock.wallAheadMs + world.clock.nowMs + 60_000;
      await context.openGrant({ macs, expiresAtMs });
      touch();
      return { kind: 'complete' };
    };
    await world.issue(world.power('h/1/1/1', { on: true }));
    return world;
  }

  /** Binds while the clock runs. */
  async function bind(world: World, operationId: OperationId, key: number): Promise<string> {
    const binding = world.session?.grants.bind(operationId, Uint8Array.of(key, key));
    await world.run(10);
    return (await binding) ?? 'no session';
  }

  test('stand in the boot memory, with a token that differs each time', async () => {
    const world = await granting();
    await world.issue(world.power('g/1/1/1', { on: true }));
    const grants = world.session?.bootState().grants ?? [];
    expect(grants.map(({ operationId }) => operationId)).toEqual(['h/1/1/1', 'g/1/1/1']);
    for (const { bootToken } of grants) expect(bootToken).toMatch(/^[0-9a-f]{32}$/);
    expect(new Set(grants.map(({ bootToken }) => bootToken)).size).toBe(2);
    const token = grants[0]?.bootToken ?? '';
    expect(world.session?.grants.byToken(token)?.operationId).toBe('h/1/1/1');
    expect(world.session?.grants.byToken('')).toBeUndefined();
  });

  test('belong to the first key, which may come back after restart and expiry', async () => {
    const world = await granting();
    expect(await bind(world, 'h/1/1/1', 1)).toBe('bound');
    expect(await bind(world, 'h/1/1/1', 2)).toBe('otherKey');
    await world.restart();
    await world.run(120_000);
    expect(await bind(world, 'h/1/1/1', 1)).toBe('bound');
    expect(await bind(world, 'h/1/1/1', 2)).toBe('otherKey');
  });

  test('have one owner when two keys come at once', async () => {
    const world = await granting();
    const grants = world.session?.grants;
    const first = grants?.bind('h/1/1/1', Uint8Array.of(1));
    const second = grants?.bind('h/1/1/1', Uint8Array.of(2));
    await world.run(10);
    expect([await first, await second]).toEqual(['bound', 'otherKey']);
  });

  test('let no new runner start once expired, whatever the clock says later', async () => {
    const world = await granting();
    await world.run(61_000);
    world.work = async () => ({ kind: 'complete' });
    await world.issue(world.verify('g/1/1/1'));
    expect(await bind(world, 'h/1/1/1', 1)).toBe('expired');
    world.clock.wallAheadMs -= 3_600_000;
    expect(await bind(world, 'h/1/1/1', 1)).toBe('expired');
    expect(await bind(world, 'h/9/9/9', 1)).toBe('noGrant');
  });

  test('are closed by the next one of the host, by its power, and by Forget', async () => {
    const world = await granting();
    await world.issue(world.power('h/2/1/1', { on: true }));
    const ids = () => world.session?.grants.all().map(({ operationId }) => operationId);
    expect(ids()).toEqual(['h/2/1/1']);
    const opening = world.work;
    world.work = async (_operation, context) => {
      await context.begin();
      await context.closeGrants();
      return { kind: 'complete' };
    };
    await world.issue(world.power('h/3/1/1'));
    expect(ids()).toEqual([]);
    world.work = opening;
    await world.issue(world.power('h/4/1/1', { on: true }));
    world.controlPlane.send({ case: 'forget', value: { hostUid: 'h' } });
    await world.run(100);
    await world.restart();
    expect(ids()).toEqual([]);
  });

  test('are closed for good when two have claimed one', async () => {
    const world = await granting();
    const [grant] = world.session?.grants.all() ?? [];
    const { operationId = '', bootToken = '' } = grant ?? {};
    expect(world.session?.grants.byToken(bootToken)?.operationId).toBe(operationId);
    const closed = world.session?.grants.close(operationId);
    await world.run(100);
    await closed;
    await world.restart();
    expect(world.session?.grants.byToken(bootToken)).toBeUndefined();
  });

  test('are not given when they cannot be written down', async () => {
    const world = await connected();
    world.work = async (_operation, context, touch) => {
      await context.begin();
      world.disk.failing = true;
      world.disk.keptFraction = 0;
      await context.openGrant({ macs, expiresAtMs: 2_000_000_000_000 });
      touch();
      return { kind: 'complete' };
    };
    await world.issue(world.power('h/1/1/1', { on: true }));
    expect(world.touched).toEqual([]);
    expect(world.session?.bootState().grants).toEqual([]);
    expect(world.controlPlane.outcome('h/1/1/1')).toMatchObject({ type: 'internal' });
  });
});

describe('Forget', () => {
  test('stops what runs, drops everything without a report, and says so', async () => {
    const world = await connected();
    const { controlPlane } = world;
    const hosts = ['h', 'g'].map((hostUid) => ({ hostUid, hostName: hostUid, macs: [] }));
    controlPlane.send({ case: 'bootSnapshot', value: { generation: 1n, hosts } });
    controlPlane.answers = false;
    await world.issue(world.verify('h/1/1/1'));
    world.work = (_operation, context) =>
      new Promise((resolve) => {
        const stopped = { kind: 'failed', type: 'cancelled', message: 'stopped' } as const;
        context.signal.addEventListener('abort', () => resolve(stopped), { once: true });
      });
    await world.issue(world.erase('h/1/2/1'));
    await world.issue(world.erase('g/1/1/1'));
    const before = controlPlane.reports.length;
    controlPlane.send({ case: 'forget', value: { hostUid: 'h' } });
    controlPlane.send({ case: 'forget', value: { hostUid: 'h' } });
    await world.run(100);
    const acknowledged = { case: 'hostForgotten', value: { hostUid: 'h' } };
    expect(controlPlane.others.slice(1)).toMatchObject([acknowledged]);
    expect(controlPlane.reports).toHaveLength(before);
    expect(world.forgotten).toEqual(['h']);
    expect(world.session?.bootState().snapshot.hosts).toMatchObject([{ hostUid: 'g' }]);
    await world.restart();
    const kept = controlPlane.hellos[1]?.operations.map(({ operationId }) => operationId);
    expect(kept).toEqual(['g/1/1/1']);
  });

  test('lets nothing more of the host start while it is under way', async () => {
    const world = await connected();
    world.work = async (_operation, context, touch) => {
      touch();
      await world.clock.sleep(1000);
      return context.signal.aborted
        ? { kind: 'failed', type: 'cancelled', message: 'stopped late' }
        : { kind: 'complete' };
    };
    await world.issue(world.verify('h/1/1/1'));
    world.controlPlane.send({ case: 'forget', value: { hostUid: 'h' } });
    await world.issue(world.verify('h/1/2/1'));
    expect(world.controlPlane.outcome('h/1/2/1')).toMatchObject({ type: 'cancelled' });
    expect(world.controlPlane.others).toEqual([]);
    await world.run(2000);
    expect(world.controlPlane.others).toMatchObject([{ case: 'hostForgotten' }]);
    expect(world.touched).toEqual(['h/1/1/1']);
  });

  test('comes in Welcome too, and is acknowledged each time', async () => {
    const world = new World();
    world.controlPlane.forgetHostUids = ['h'];
    await world.bootAndConnect();
    await world.restart();
    const acknowledged = { case: 'hostForgotten', value: { hostUid: 'h' } };
    expect(world.controlPlane.others).toMatchObject([acknowledged, acknowledged]);
  });

  test('is not acknowledged while the journal still knows an operation', async () => {
    const world = await connected();
    const { controlPlane } = world;
    controlPlane.answers = false;
    await world.issue(world.verify('h/1/1/1'));
    world.disk.failing = true;
    controlPlane.send({ case: 'forget', value: { hostUid: 'h' } });
    await world.run(100);
    expect(controlPlane.others).toEqual([]);
    world.disk.failing = false;
    controlPlane.forgetHostUids = ['h'];
    controlPlane.cut();
    await world.run(5000);
    expect(controlPlane.others).toMatchObject([{ case: 'hostForgotten' }]);
    await world.restart();
    expect(controlPlane.hellos.at(-1)?.operations).toEqual([]);
  });
});

describe('facts', () => {
  const told = (world: World) =>
    world.controlPlane.facts.map(({ hostUid, sequence, result }) => {
      if (result.case !== 'hostUpdated') throw new Error(result.case);
      const { poweredOn, unexpectedNetboot, runnerReady } = result.value.observations ?? {};
      const seen = { poweredOn, mac: unexpectedNetboot?.mac, runner: runnerReady?.runnerSession };
      return [hostUid, sequence, JSON.stringify(seen)];
    });

  test('are told at once and again to each session, for the link may have been dead', async () => {
    const world = await connected();
    world.session?.reportFacts('h', { poweredOn: true });
    world.session?.reportFacts('h', { unexpectedNetboot: { mac: '52:54:00:00:00:01' } });
    world.controlPlane.cut();
    await world.run(10);
    world.session?.reportFacts('h', { poweredOn: false });
    world.session?.reportFacts('g', { unexpectedNetboot: { mac: '52:54:00:00:00:02' } });
    await world.run(5000);
    const both = [
      ['h', 0n, '{"poweredOn":false,"mac":"52:54:00:00:00:01"}'],
      ['g', 0n, '{"mac":"52:54:00:00:00:02"}'],
    ];
    expect(told(world)).toEqual(both);
    world.controlPlane.cut();
    await world.run(5000);
    expect(told(world)).toEqual([...both, ...both]);
  });

  test('facts of a netboot end with a newer one, and with the next boot by order', async () => {
    const world = await connected();
    const netboot = (mac: string) =>
      world.session?.reportFacts('h', { unexpectedNetboot: { mac } });
    const toldAnew = async () => {
      world.controlPlane.facts.length = 0;
      world.controlPlane.cut();
      await world.run(5000);
      return told(world).map(([, , seen]) => seen);
    };
    netboot('52:54:00:00:00:01');
    netboot('52:54:00:00:00:02');
    expect(await toldAnew()).toEqual(['{"mac":"52:54:00:00:00:02"}']);
    const operation = { id: 'h/1/1/1', hostUid: 'h', hostName: 'h' };
    const opened = world.session?.grants.open(operation, {
      macs: ['52:54:00:00:00:02'],
      expiresAtMs: 1e15,
    });
    await world.run(100);
    await opened;
    expect(await toldAnew()).toEqual([]);
  });

  test('facts of a refused runner are told once of each boot', async () => {
    const world = await connected();
    const refuse = (boot: string, text: string) =>
      world.session?.reportRunnerRefused('h', boot, text);
    refuse('h/1/1/1', 'started 43 s too early');
    refuse('h/1/1/1', 'started 44 s too early');
    refuse('h/2/1/1', 'started 45 s too early');
    await world.run(100);
    const texts = world.controlPlane.facts.map(({ result }) => {
      return result.case === 'hostUpdated' && result.value.observations?.runnerRefused?.message;
    });
    expect(texts).toEqual(['started 43 s too early', 'started 45 s too early']);
  });

  test('facts of a runner stand in every Hello until that runner has gone', async () => {
    const world = await connected();
    const runnerReady = { hostUid: 'h', bootOperationId: 'h/1/1/1', runnerSession: 's1' };
    world.session?.reportFacts('h', { runnerReady });
    await world.run(100);
    expect(told(world)).toEqual([['h', 0n, '{"runner":"s1"}']]);
    world.session?.noteRunnerGone('h', 'another');
    world.controlPlane.cut();
    await world.run(5000);
    expect(world.controlPlane.hellos[1]?.runners).toMatchObject([runnerReady]);
    world.session?.noteRunnerGone('h', 's1');
    world.controlPlane.cut();
    await world.run(5000);
    expect(world.controlPlane.hellos[2]?.runners).toEqual([]);
  });

  test('are kept for a bounded number of hosts', async () => {
    const world = new World();
    world.limits = { factsHostsMax: 2 };
    world.controlPlane.reachable = false;
    await world.bootAndConnect();
    for (const host of ['a', 'b', 'a', 'c']) world.session?.reportFacts(host, { poweredOn: true });
    world.controlPlane.reachable = true;
    await world.run(31_000);
    expect(world.controlPlane.facts.map(({ hostUid }) => hostUid)).toEqual(['a', 'c']);
  });
});

test('a session refuses to be started a second time', async () => {
  const world = await connected();
  const executor: Executor = {
    operationKinds: [],
    execute: async () => ({ kind: 'complete' }),
    resume: () => 'interrupted',
    noteReportDurable: () => undefined,
    forgetHost: async () => undefined,
  };
  await expect(world.session?.start(executor)).rejects.toThrow('started before');
});
