/**
 * The list of a hundred thousand hosts in Chromium: filtered, sorted and scrolled, in bounded work,
 * and a page that is open through an hour of events.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildConsoleInto } from '@rackwright/console/build';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  browserProblem,
  heapBytes,
  longestTask,
  noteLongTasks,
  openPage,
  startBrowser,
  violationsOf,
  type WatchedPage,
} from './browser.ts';
import { type LargeFleet, lastScreen, startLargeFleet } from './large-fleet.ts';

const hosts = 100_000;
const pageRows = 100;
const rowPx = 34;
/** An hour of ten changes a second. */
const eventsOfAnHour = 36_000;
const problem = browserProblem();
/** A busy machine makes tasks and paints slow; the code that is too slow is so in every round. */
const roundsMax = 8;

let folder: string;
let fleet: LargeFleet;
let browser: Browser;
let opened: WatchedPage;

beforeAll(async () => {
  if (problem !== undefined) return;
  folder = mkdtempSync(join(tmpdir(), 'rackwright-console-test-'));
  await buildConsoleInto(join(folder, 'console'));
  fleet = await startLargeFleet(hosts, join(folder, 'console'));
  browser = await startBrowser();
  opened = await openPage(browser, { viewport: { width: 1280, height: 800 } });
  await opened.page.goto(`${fleet.address}/#/hosts`);
  await opened.page.getByText('100,000 hosts').waitFor();
});

afterAll(async () => {
  await browser?.close();
  await fleet?.close();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

/** The best of several rounds: what no machine, however busy, makes worse in all of them. */
async function best(limit: number, round: () => Promise<number>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let left = roundsMax; left > 0 && least >= limit; left -= 1) {
    least = Math.min(least, await round());
  }
  return least;
}

const frame = () => opened.page.locator('.grid-frame');
const row = (index: number) =>
  opened.page.locator('.grid-spacer').getByText(`h${String(index).padStart(6, '0')}`);

test('the first paint comes within a second', async (context) => {
  if (problem !== undefined) return context.skip(problem);
  const paintMs = await best(1_000, async () => {
    const { page, context: own } = await openPage(browser);
    await page.goto(fleet.address);
    await page.locator('.top').waitFor();
    const paint = await page.evaluate(
      () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime,
    );
    await own.close();
    return paint ?? Number.POSITIVE_INFINITY;
  });
  expect(paintMs).toBeLessThan(1_000);
});

test('a person who scrolls reads what is looked at, and no task takes 100 ms', async (context) => {
  if (problem !== undefined) return context.skip(problem);
  const { page } = opened;
  await row(0).waitFor();
  await noteLongTasks(page);
  const before = fleet.listed();
  const longest = await best(100, async () => {
    await page.evaluate(`(async () => {
      const element = document.querySelector('.grid-frame');
      for (let step = 0; step <= 100; step += 1) {
        element.scrollTop = (element.scrollHeight / 100) * step;
        await new Promise(requestAnimationFrame);
      }
    })()`);
    await row(hosts - 1).waitFor();
    const middle = hosts / 2;
    await frame().evaluate((element, px) => (element.scrollTop = px), middle * rowPx);
    await row(middle).waitFor();
    return await longestTask(page);
  });
  expect(longest).toBeLessThan(100);
  const drawn = await page.locator('.grid-spacer > .grid-row').count();
  expect(drawn).toBeLessThan(60);
  // Of a thousand pages those at which the scrolling has stayed for a moment, in each round.
  expect(fleet.listed() - before).toBeLessThan(roundsMax * 101 * 2 * pageRows);
  await frame().press('End');
  await row(hosts - 1).waitFor();
  await frame().press('Home');
  await row(0).waitFor();
});

test('a filter that is typed and one that is chosen are the server’s to find', async (context) => {
  if (problem !== undefined) return context.skip(problem);
  const { page } = opened;
  await page.getByRole('searchbox').fill('h04242');
  await page.getByText('10 hosts').waitFor();
  await row(42_420).waitFor();
  expect([...fleet.filters]).toContain('(name = *h04242* OR serial:h04242)');
  await page.getByRole('searchbox').fill('');
  await page.getByLabel('State').selectOption('available');
  await page.getByText('25,000 hosts').waitFor();
  await row(4).waitFor();
  expect(await row(1).count()).toBe(0);
  await page.getByRole('columnheader', { name: 'Name' }).getByRole('button').click();
  await row(99_996).waitFor();
  await page.getByRole('button', { name: 'Remove state available' }).click();
  await page.getByText('100,000 hosts').waitFor();
});

test('the last screen of a host is shown beside a boot that stands still', async (context) => {
  if (problem !== undefined) return context.skip(problem);
  const { page } = opened;
  for (const hash of ['#/hosts/h000001', '#/hosts/h000001?tab=boots']) {
    await page.goto(`${fleet.address}/${hash}`);
    const screen = page.getByLabel('Last lines of the serial console');
    await screen.waitFor();
    expect(await screen.textContent()).toBe(lastScreen.join('\n'));
    expect(await violationsOf(page)).toEqual([]);
  }
});

test('an hour of events leaves the heap as it was, and no task takes 100 ms', async (context) => {
  if (problem !== undefined) return context.skip(problem);
  const { page } = opened;
  await page.goto(`${fleet.address}/#/hosts`);
  await row(0).waitFor();
  await fleet.change(2_000);
  await page.waitForTimeout(300);
  const before = await heapBytes(opened);
  await noteLongTasks(page);
  const longest = await best(100, async () => {
    await fleet.change(eventsOfAnHour / roundsMax);
    return await longestTask(page);
  });
  await fleet.change(eventsOfAnHour);
  await page.waitForTimeout(300);
  const grown = (await heapBytes(opened)) - before;
  expect(longest).toBeLessThan(100);
  expect(grown).toBeLessThan(1_000_000);
  expect(opened.complaints).toEqual([]);
  expect(opened.asked.filter((url) => !url.startsWith(fleet.address))).toEqual([]);
});
