/**
 * A rack that says as much as it can, and many that come at once: the others are served, and what
 * is held stays bounded. How long an acknowledgement takes meanwhile is measured by
 * `npm run bench -- agents`, not here.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AgentStream, HostileSite } from './hostile-agent-site.ts';

let site: HostileSite;

beforeAll(async () => {
  site = await HostileSite.start();
}, 60_000);
afterAll(() => site.stop());

/** Facts that a noisy rack brings, a change of its host each. */
const factsMax = 100_000;
const rssGrowthBytesMax = 600 * 1024 * 1024;

describe('a rack that tells facts without end', () => {
  test('is read as fast as goes, and keeps no other rack from its acknowledgements', {
    timeout: 60_000,
  }, async () => {
    const rssBefore = process.memoryUsage().rss;
    const noisy = await site.connectA();
    let sent = 0;
    let isOver = false;
    const talk = async () => {
      while (!isOver && !noisy.isOver && sent < factsMax) {
        const value = { observations: { poweredOn: sent % 2 === 0 } };
        const result = { case: 'hostUpdated' as const, value };
        sent += 1;
        const message = { case: 'report' as const, value: { hostUid: site.aHostUid, result } };
        if (!noisy.stream.send(message)) await noisy.stream.drained();
      }
    };
    const talking = talk();
    for (let round = 0; round < 20; round += 1) {
      expect(await site.bStream.settled(), 'the other rack has its lease renewed').toBe(true);
    }
    isOver = true;
    noisy.stream.cut();
    await talking;
    expect(sent).toBeGreaterThan(100);
    expect(process.memoryUsage().rss - rssBefore).toBeLessThan(rssGrowthBytesMax);
  });
});

describe('a rack that opens streams without end', () => {
  test('has so many and no more, hears when to come again, and comes in when they are gone', {
    timeout: 60_000,
  }, async () => {
    const streams = Array.from({ length: 20 }, () => new AgentStream(site.port, site.a));
    const refused = () => streams.filter(({ isOver }) => isOver);
    await streams[0]?.until(() => refused().length >= 12);
    const [one] = refused();
    expect(await one?.stream.ended).toMatchObject({
      status: '14',
      message: expect.stringContaining('come again later'),
    });
    expect(refused()).toHaveLength(12);
    for (const { stream } of streams) stream.cut();
    expect(await site.bStream.settled()).toBe(true);
    const again = await site.connectA();
    again.stream.cut();
  });
});
