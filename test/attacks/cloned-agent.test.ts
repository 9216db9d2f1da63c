/**
 * Two agents with one identity: the disk of a rack box was copied, and the copy is started. What
 * the journal knows decides which one may act; people are told of the other.
 */
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { RunOutcome } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { Box, executedTwice, Site, troubleIn, until } from '../e2e/identity-site.ts';

const timeout = 300_000;
const options = { racks: 2, hostsPerRack: 2 };

async function onSite(body: (site: Site) => Promise<void>): Promise<void> {
  const site = await Site.start(options);
  try {
    await body(site);
  } finally {
    await site.stop();
  }
}

/** Another box with all that is on the disk of the first one. */
async function copyOf(site: Site, box: Box): Promise<Box> {
  const clone = new Box(box.rack, join(site.folder, `copy-of-${box.rack}`));
  await cp(box.folder, clone.folder, { recursive: true, preserveTimestamps: true });
  site.boxes.push(clone);
  return clone;
}

/** What a person reads of the rack: the record's words, and what to do. */
async function shownOf({ clients }: Site, name: string) {
  const { status } = await clients.racks.getRack({ name });
  const { causes, unblock } = await clients.racks.explainRack({ name });
  return { refused: status?.duplicateAgent ?? '', causes: causes.map(({ text }) => text), unblock };
}

test(
  'a copied disk that is started beside its box does nothing twice, and is shown',
  { timeout },
  () =>
    onSite(async (site) => {
      const names = await site.ready();
      const [box] = site.boxes;
      if (box === undefined) throw new Error('no box');
      const mine = names.filter((name) => name.startsWith('hosts/r1-'));
      const others = names.filter((name) => !mine.includes(name));
      const clone = await copyOf(site, box);
      await clone.start();
      // One of the two is refused and told so; which one, the journal's generation decides (R6).
      await until('one of the two to be refused', () => {
        return [box, clone].some((each) => each.said('duplicateAgent').length > 0)
          ? true
          : undefined;
      });
      const shown = await until('people to be told', async () => {
        const { refused, causes, unblock } = await shownOf(site, 'racks/r1');
        return refused === '' ? undefined : { refused, causes, unblock };
      });
      expect(shown.causes).toContain(shown.refused);
      expect(shown.unblock).toContain('stop one of the two agents that share this identity');
      // Work goes on at one of them, and nothing is carried out by both.
      expect(troubleIn(await Promise.all(mine.map((name) => site.clean(name))))).toEqual([]);
      expect(executedTwice(site.boxes)).toEqual([]);
      const both = [...box.executed.keys()].filter((id) => clone.executed.has(id));
      expect(both).toEqual([]);
      // The other rack has nothing to do with it.
      expect(troubleIn([await site.clean(others[0] ?? '')])).toEqual([]);
      expect((await shownOf(site, 'racks/r2')).refused).toBe('');
    }),
);

test(
  'once a person revokes the identity, neither the box nor its copy is an agent',
  { timeout },
  () =>
    onSite(async (site) => {
      await site.ready();
      const [box] = site.boxes;
      if (box === undefined) throw new Error('no box');
      const clone = await copyOf(site, box);
      const { racks } = site.clients;
      await racks.revokeAgent({ name: 'racks/r1', reason: 'its disk was copied' });
      await clone.start();
      for (const each of [box, clone]) {
        await until('it to be told', () => each.said('its disk was copied')[0]);
      }
      const { token } = await racks.createJoinToken({ rack: 'racks/r1' });
      // Its key is no key any more, not even with a token: a copy of it stays shut out.
      await expect(clone.join(site.address, token)).rejects.toThrow('was revoked');
      const executed = [box.executed.size, clone.executed.size];
      const next = await site.addBox('r1', token);
      await next.start();
      const cleaned = await site.clean('hosts/r1-h1');
      expect(cleaned.status?.run?.outcome).toBe(RunOutcome.SUCCEEDED);
      await sleep(500);
      expect([box.executed.size, clone.executed.size]).toEqual(executed);
    }),
);
