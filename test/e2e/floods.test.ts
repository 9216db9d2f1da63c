/**
 * A rack that says as much as it can, and many that come at once: the others are served, and what
 * is held stays bounded. How long an acknowledgement takes meanwhile is measured by
 * `npm run bench -- agents`, not here.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AgentStream, HostileSite } from './hostile-agent-site.ts';
import type { NoiseOrder } from './noisy-agent.ts';

const timeout = 600_000;

let site: HostileSite;

beforeAll(async () => {
  site = await HostileSite.start();
});
afterAll(() => site.stop());

/** Facts that a noisy rack brings, a change of its host each. */
const factsMax = 4_000;
/** Of the control plane and this test; the noise is made elsewhere. */
const rssGrowthBytesMax = 300 * 1024 * 1024;

describe('a rack that reports facts without end', () => {
  test('is read as fast as possible, and keeps no other rack from its acknowledgements', {
    timeout,
  }, async () => {
    const { id, generation } = site.nextJournal();
    const order: NoiseOrder = {
      ...{ port: site.port, credentials: site.a, hostUid: site.aHostUid, factsMax },
      journal: { id, generation: String(generation) },
    };
    const program = join(import.meta.dirname, 'noisy-agent.ts');
    const noisy = spawn(process.execPath, [program, JSON.stringify(order)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(noisy, 'close');
    let said = '';
    noisy.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    await Promise.race([once(noisy.stdout, 'data'), ended]);
    const rssBefore = process.memoryUsage().rss;
    // As many as there are while it talks, and some at least.
    let answered = 0;
    while (noisy.exitCode === null && !said.includes('over')) {
      expect(await site.bStream.settled(), 'the other rack has its lease renewed').toBe(true);
      answered += 1;
    }
    await ended;
    expect(said).toBe('welcomed\nover\n');
    expect(answered).toBeGreaterThan(0);
    expect(process.memoryUsage().rss - rssBefore).toBeLessThan(rssGrowthBytesMax);
  });
});

describe('a rack that opens streams without end', () => {
  test('has so many and no more, hears when to come again, and comes in when they are gone', {
    timeout,
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
