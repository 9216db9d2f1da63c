/** Certificates that come and go while agents work: no work is lost, and none is done twice. */
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiFailure, FailureType, type Host, Authority_Stage as Stage } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { executedTwice, Site, type SiteOptions, troubleIn, until } from './identity-site.ts';

const lives = {
  agentCertificateMs: 20_000,
  caLifetimeMs: 3_600_000,
  nextStayMs: 0,
  retiredStayMs: 500,
  checkMs: 300,
};
const small: SiteOptions = { racks: 3, hostsPerRack: 3, trustTiming: lives };
/** A busy machine has 12 s and more from the first try to renew to the end of the certificate. */
const unhurried: SiteOptions = {
  ...small,
  hostsPerRack: 2,
  operationMs: 300,
  trustTiming: { ...lives, agentCertificateMs: 40_000 },
};
const renewals = 2;

async function onSite(options: SiteOptions, body: (site: Site) => Promise<void>): Promise<void> {
  const site = await Site.start(options);
  try {
    await body(site);
  } finally {
    await site.stop();
  }
}

/** No runner but the one that has erased may say that it did: such a clean has to be done again. */
function isDoneOrCutShort({ status }: Host): boolean {
  const { error, steps = [], currentStep = 0 } = status?.run ?? {};
  if (error === undefined) return true;
  const isLook = steps[currentStep]?.name === 'runner.inspectAgain';
  return isLook && error.type === FailureType.INTERRUPTED;
}

test('certificates are renewed under load, each session opened before the last one ends', {}, () =>
  onSite(unhurried, async (site) => {
    const names = await site.ready();
    const isEnough = (ended: number) =>
      ended > names.length &&
      site.boxes.every((box) => box.said('certificate renewed').length >= renewals);
    const cleans = await site.work(names, isEnough);
    expect(troubleIn(cleans)).toEqual([]);
    expect(executedTwice(site.boxes)).toEqual([]);
    for (const box of site.boxes) {
      expect(box.said('opens the next session').length).toBeGreaterThanOrEqual(renewals);
      // Nobody was ever without a session.
      expect(box.said('no session with the control plane')).toEqual([]);
      expect(box.said('this one goes on')).toEqual([]);
    }
    const { status } = await site.clients.racks.getRack({ name: 'racks/r1' });
    expect(status?.duplicateAgent).toBe('');
  }),
);

test('the authority is rotated under load, until nothing is left of the old one', {}, () =>
  onSite(unhurried, async (site) => {
    const names = await site.ready();
    const { authorities } = site.clients;
    const [old] = (await authorities.getAuthorities({})).authorities;
    let isOver = false;
    const isEnough = (ended: number) => isOver && ended > names.length;
    const rotation = (async () => {
      const call = { reason: 'it was time', requestId: 'rotate-1' };
      const begun = await site.clients.authorities.rotateAuthority(call);
      expect(begun.authorities.map(({ stage }) => stage)).toEqual([Stage.ACTIVE, Stage.NEXT]);
      await until('the old authority to be gone', async () => {
        // The file that operators are given follows, and trusts both in between.
        await site.connect();
        const now = await site.clients.authorities.getAuthorities({});
        return now.authorities.some(({ sha256 }) => sha256 === old?.sha256) ? undefined : true;
      });
      isOver = true;
      // Repeated, the request is answered and acts no second time.
      const again = await site.clients.authorities.rotateAuthority(call);
      expect(again.authorities).toHaveLength(1);
    })();
    const [cleans] = await Promise.all([site.work(names, isEnough), rotation]);
    expect(troubleIn(cleans)).toEqual([]);
    expect(executedTwice(site.boxes)).toEqual([]);
    const [now] = (await site.clients.authorities.getAuthorities({})).authorities;
    expect(now).toMatchObject({ stage: Stage.ACTIVE, reason: 'it was time' });
    for (const box of site.boxes) {
      expect(box.renewal?.trusted()).toEqual([now?.sha256]);
      expect(box.said('no session with the control plane')).toEqual([]);
    }
    // Across a restart it is the same, and the key lies nowhere in the clear.
    await site.controlPlane.close();
    expect(existsSync(join(site.folder, 'cp/identity/ca.key'))).toBe(false);
    await site.startControlPlane();
    expect((await site.clients.authorities.getAuthorities({})).authorities[0]?.sha256).toBe(
      now?.sha256,
    );
    expect(troubleIn([await site.clean('hosts/r1-h1')])).toEqual([]);
  }),
);

test(
  'agents whose certificates end while the control plane is away come back by their keys',
  {},
  () =>
    onSite({ ...small, operationMs: 300 }, async (site) => {
      const names = await site.ready();
      let isOver = false;
      const outage = (async () => {
        await sleep(1_000);
        await site.controlPlane.close();
        // Longer than any certificate lives.
        await sleep(lives.agentCertificateMs + 2_000);
        await site.startControlPlane();
        await until('every agent to be back', async () => {
          const { racks } = await site.clients.racks.listRacks({});
          return racks.every(({ status }) => status?.agentConnected === true) ? true : undefined;
        });
        isOver = true;
      })();
      const [cleans] = await Promise.all([site.work(names, () => isOver), outage]);
      expect(cleans.length).toBeGreaterThanOrEqual(names.length);
      expect(troubleIn(cleans)).toEqual([]);
      expect(executedTwice(site.boxes)).toEqual([]);
    }),
);

test(
  'a revoked agent is out within seconds, the others work on, and another box takes its place',
  {},
  () =>
    onSite({ ...small, trustTiming: { ...lives, agentCertificateMs: 600_000 } }, async (site) => {
      const names = await site.ready();
      const [box] = site.boxes;
      if (box === undefined) throw new Error('no box');
      const mine = names.filter((name) => name.startsWith('hosts/r1-'));
      const others = names.filter((name) => !mine.includes(name));
      let isOver = false;
      const working = site.work(others, () => isOver);
      const interrupted = mine.map((name) => site.clean(name));
      await until('its work to begin', () => (box.executed.size > 6 ? true : undefined));
      const { racks } = site.clients;
      await racks.revokeAgent({ name: 'racks/r1', reason: 'the box was stolen' });
      const told = await until('the agent to be told', () => box.said('keyRevoked')[0]);
      expect(String(told.fields['reason'])).toContain('the box was stolen');
      expect(String(told.fields['reason'])).toContain('--new-key');
      const { status } = await racks.getRack({ name: 'racks/r1' });
      expect(status).toMatchObject({ agentKeySha256: '', agentConnected: false, revokedKeys: 1 });
      expect(status?.lastRevoked?.reason).toBe('the box was stolen');
      const { causes } = await racks.explainRack({ name: 'racks/r1' });
      expect(causes[0]?.text).toContain('revoked by user:admin: the box was stolen');
      await box.stop();
      const executedBefore = box.executed.size;

      // The same key does not come back, not even with a good token.
      const { token } = await racks.createJoinToken({ rack: 'racks/r1' });
      await expect(box.join(site.address, token)).rejects.toThrow('was revoked');
      const next = await site.addBox('r1', token);
      await next.start();
      const ended = await Promise.all(interrupted);
      isOver = true;
      expect(troubleIn(await working)).toEqual([]);
      expect(executedTwice(site.boxes)).toEqual([]);
      expect(box.executed.size).toBe(executedBefore);
      // What was under way ended as interrupted, and was done again by its class, on the new box.
      expect(next.executed.size).toBeGreaterThan(0);
      expect(ended.filter((host) => !isDoneOrCutShort(host))).toEqual([]);
    }),
);

test('each way of being nobody’s agent has its own words, with what to do', () =>
  onSite({ racks: 2, hostsPerRack: 0 }, async (site) => {
    const { racks } = site.clients;
    const [first, second] = site.boxes;
    if (first === undefined || second === undefined) throw new Error('no boxes');
    const refused = await racks.createJoinToken({ rack: 'racks/r1' }).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(refused).toBeInstanceOf(ApiFailure);
    expect(String(refused)).toContain('rackwright rack join-token r1 --replace');

    const made = await racks.createJoinToken({ rack: 'racks/r1', replaceAgent: true });
    expect(made.enrolmentAddress).toBe(site.address);
    expect(made.replacesKeySha256).toMatch(/^[0-9a-f]{64}$/);
    await expect(second.join(site.address, made.token)).rejects.toThrow('belongs to racks/r2');
    const wrong = made.token.slice(0, -4);
    await expect(first.join(site.address, `${wrong}AAAA`)).rejects.toThrow('no such join token');
    const other = made.token.replace(/^rwj1\.[0-9a-f]{64}/, `rwj1.${'0'.repeat(64)}`);
    const mismatch = await second
      .join(site.address, other)
      .catch((error: unknown) => String(error));
    expect(mismatch).toContain('0'.repeat(64));
    expect(mismatch).toContain(site.controlPlane.identity.caSha256);

    // The box is set up anew: another key, put in the place of the old one by a person's token.
    await first.stop();
    await rm(first.folder, { recursive: true });
    const next = await site.addBox('r1', made.token);
    await next.start();
    await until('the new agent to be connected', async () => {
      const { status } = await racks.getRack({ name: 'racks/r1' });
      return status?.agentConnected === true ? true : undefined;
    });
    const { status } = await racks.getRack({ name: 'racks/r1' });
    expect(status?.lastRevoked?.replaced).toBe(true);
    expect(status?.certificateExpireTime).toBeDefined();

    await racks.deleteRack({ name: 'racks/r2' });
    const gone = await until('the agent of the deleted rack to be told', () => {
      return second.said('unknownRack')[0];
    });
    expect(String(gone.fields['reason'])).toContain('rackwright rack create r2');
  }));

const dayMs = 86_400_000;

test('a control plane whose clock is a day ahead is told apart from a wrong one', () =>
  onSite({ racks: 0, hostsPerRack: 0, clockAheadMs: dayMs }, async (site) => {
    // Operators cannot reach it either, so that the rack and its token come from the inside.
    const token = `rwj1.${site.controlPlane.identity.caSha256}.r1.${'A'.repeat(43)}`;
    const said = await site.addBox('r1', token).then(
      () => '',
      (error: unknown) => String(error),
    );
    expect(said).toContain('this machine’s clock says');
    expect(said).toContain('the control plane’s certificate is good from');
    expect(said).toContain('timedatectl');
  }));

test('a control plane whose clock is a day behind certifies, and the agent knows it', {}, () =>
  onSite({ racks: 1, hostsPerRack: 0, clockAheadMs: -dayMs }, async (site) => {
    await until('the agent to be connected', async () => {
      const { status } = await site.clients.racks.getRack({ name: 'racks/r1' });
      return status?.agentConnected === true ? true : undefined;
    });
    const identity = await site.boxes[0]?.files.load();
    expect(Math.abs((identity?.clockOffsetMs ?? 0) + dayMs)).toBeLessThan(60_000);
    // Its life counts from now, by the agent's clock as by the other one.
    expect((identity?.expiresAtMs ?? 0) - (identity?.issuedAtMs ?? 0)).toBeGreaterThan(6 * dayMs);
  }),
);
