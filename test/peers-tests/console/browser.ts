/** Chromium as the tests of the console drive it: Debian's, headless, kept off every network. */
import { existsSync } from 'node:fs';
import axe from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';

const program = '/usr/bin/chromium';
const flags = [
  ...['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-dev-shm-usage'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
  // Whatever is not on loopback has no address.
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1',
];

/** Why no test can be run here; undefined: it can. */
export function browserProblem(): string | undefined {
  return existsSync(program) ? undefined : `${program} is missing: npm run peers installs it`;
}

export function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: program, args: flags });
}

/** A page of its own session, which notes what it asks for and what it complains of. */
export interface WatchedPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Errors of scripts, of the policy of contents, and of the console, but for refused calls. */
  readonly complaints: string[];
  /** Addresses that were asked for. */
  readonly asked: string[];
}

export async function openPage(
  browser: Browser,
  options: Parameters<Browser['newContext']>[0] = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  const asked: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.stack ?? error.message));
  page.on('console', (message) => {
    const isRefusal = message.location().url.includes('/rackwright.v1.');
    if (message.type() === 'error' && !isRefusal) complaints.push(message.text());
  });
  page.on('request', (request) => asked.push(request.url()));
  return { page, context, complaints, asked };
}

/** What axe-core holds against the page as it is, in the order of WCAG 2.2 AA; empty: nothing. */
export async function violationsOf(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<AxeResults>(
    `axe.run({ runOnly: ${JSON.stringify(rules)} })`,
  );
  return violations.map(({ id, nodes }) => {
    return `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`;
  });
}

const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

interface AxeResults {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly html: string }[];
  }[];
}

/** Begins to note tasks of the page's thread that take longer than 50 ms (Long Tasks API). */
export async function noteLongTasks(page: Page): Promise<void> {
  await page.evaluate(`{
    globalThis.longTasks = [];
    const note = (list) => longTasks.push(...list.getEntries().map(({ duration }) => duration));
    new PerformanceObserver(note).observe({ type: 'longtask' });
  }`);
}

/** The longest since the last time this was asked, in milliseconds; 0: none took 50. */
export function longestTask(page: Page): Promise<number> {
  return page.evaluate<number>('Math.max(0, ...longTasks.splice(0))');
}

/** Bytes of the page's heap that are in use once all garbage is gone. */
export async function heapBytes({ page, context }: WatchedPage): Promise<number> {
  const session = await context.newCDPSession(page);
  await session.send('HeapProfiler.enable');
  await session.send('HeapProfiler.collectGarbage');
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  await session.detach();
  return usedSize;
}
