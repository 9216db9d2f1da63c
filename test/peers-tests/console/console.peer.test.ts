/**
 * The console in Chromium, at a whole control plane with racks made of software: sign in, watch a
 * clean, plan and confirm one, open its certificate, follow a rollout, and lose the control plane.
 */
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { makeFolder, parseOptions, planFleet, Site } from '@rackwright/demo/site';
import { Role, RunPhase } from '@rackwright/messages';
import { systemImage } from '@rackwright/sim/machine';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { programFolder } from '../../e2e/programs.ts';
import {
  browserProblem,
  openPage,
  startBrowser,
  violationsOf,
  type WatchedPage,
} from './browser.ts';

const problem = browserProblem();
/** For what takes a machine its time, on a busy one. */
const patience = { timeout: 240_000 };
const ofHost = ['', '?tab=inventory', '?tab=disks', '?tab=boots'].map((tab) => `hosts/h1${tab}`);
/** Colour scheme and width in pixels of a wide screen and a phone: all that come together. */
const looks = (['dark', 'light'] as const).flatMap((scheme) =>
  [1280, 390].map((width) => [scheme, width] as const),
);
const pages = ['pools', 'workflows', 'discovery', 'brakes', 'audit'];

let site: Site;
let browser: Browser;
let opened: WatchedPage;
let page: Page;

beforeAll(async () => {
  if (problem !== undefined) return;
  const parsed = parseOptions(['--hosts', '2', '--racks', '1', '--check']);
  if (parsed.kind !== 'run') throw new Error('the options of the demo are other ones now');
  const fleet = planFleet(parsed.options);
  site = new Site(
    makeFolder(),
    { ...fleet, machines: fleet.machines.slice(0, 2) },
    programFolder(),
  );
  await site.bundle();
  await site.startControlPlane();
  await site.startRegistry();
  browser = await startBrowser();
  opened = await openPage(browser, { viewport: { width: 1280, height: 900 } });
  page = opened.page;
  page.setDefaultTimeout(patience.timeout);
});

afterAll(async () => {
  await browser?.close();
  await site?.stop();
});

const token = () =>
  readFileSync(join(site.folder, 'controlplane/identity/admin.token'), 'utf8').trim();

async function signIn(): Promise<void> {
  await page.getByLabel('Token').fill(token());
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** Until the page says that the run itself ended well: none before it, and none of its steps. */
async function untilSucceeded(run: string): Promise<void> {
  const head = page.locator('.run-head', { has: page.getByText(run, { exact: true }) });
  await head.getByText('succeeded', { exact: true }).waitFor();
}

async function go(hash: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
}

async function pushImage(version: string): Promise<string> {
  const reference = `${site.registry.name}/web:${version}`;
  mkdirSync(join(site.folder, 'images'), { recursive: true });
  const file = `images/web-${version}.raw.gz`;
  const content = systemImage({ name: 'web', version }, 4 * 1024 * 1024);
  writeFileSync(join(site.folder, file), gzipSync(content, { level: 1 }));
  const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
  const said = ['--version', version, '--architecture', architecture, '--plain-http'];
  await command('image', 'push', file, reference, ...said);
  return reference;
}

async function command(...args: string[]): Promise<void> {
  const { code, output } = await site.rackwright(args);
  expect(code, `${args.join(' ')}: ${output}`).toBe(0);
}

test('a person without a session signs in, and a wrong token gets advice', async (context) => {
  if (problem !== undefined) return context.skip(problem);
  await page.goto(`https://${site.operatorsAddress}/#/hosts`);
  await page.getByLabel('Token').fill('rwo1.wrong.wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  const refusal = page.getByRole('alert');
  await refusal.getByText('You are not signed in.').waitFor();
  expect(await refusal.locator('.advice').textContent()).toMatch(/token/i);
  expect(await violationsOf(page)).toEqual([]);
  await signIn();
  await page.getByRole('heading', { name: 'Hosts' }).waitFor();
  await page.getByText('0 hosts').waitFor();
});

test('a clean is watched live, from the first step to the last', async (context) => {
  if (problem !== undefined) return context.skip(problem);
  await site.startRacks();
  await go('#/hosts/h1');
  await site.enrolHosts();
  await page.getByText('clean 3', { exact: true }).waitFor();
  await page.getByText('deploy.erase_devices').first().waitFor();
  await page.getByRole('progressbar').waitFor();
  await page.locator('.host-line .badge', { hasText: 'available' }).first().waitFor();
  await untilSucceeded('clean 3');
});

test('a planned clean says what is lost, and starts once the name is typed', async (context) => {
  if (problem !== undefined) return context.skip(problem);
  await page.getByRole('button', { name: 'Clean …' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('What is lost').waitFor();
  await dialog.getByText('h1-NVME', { exact: false }).first().waitFor();
  const start = dialog.getByRole('button', { name: 'Clean h1 and lose its data' });
  expect(await start.isDisabled()).toBe(true);
  expect(await violationsOf(page)).toEqual([]);
  await dialog.locator('input[name=confirm]').fill('h2');
  expect(await start.isDisabled()).toBe(true);
  await dialog.locator('input[name=confirm]').fill('h1');
  await dialog.locator('input[name=reason]').fill('by the console');
  await start.click();
  await untilSucceeded('clean 4');
  const { status } = await site.clients.hosts.getHost({ name: 'hosts/h1' });
  expect(status?.run).toMatchObject({
    number: 4n,
    phase: RunPhase.ENDED,
    planHash: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
});

test('a machine that nobody knows is dropped from the list', async (context) => {
  if (problem !== undefined) return context.skip(problem);
  await command('rack', 'update', 'r1', '--discovery', 'on');
  await site.addStrangers(1, 1);
  site.machine('u1').power.powerOn('network');
  await go('#/discovery');
  await page.getByText('NEW-1', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Drop …' }).click();
  await page.getByRole('dialog').getByText('NEW-1').waitFor();
  expect(await violationsOf(page)).toEqual([]);
  await page.getByRole('button', { name: 'Drop', exact: true }).click();
  await page.getByText('No machine waits to be accepted.', { exact: false }).waitFor();
  expect((await site.clients.discovery.listDiscoveredMachines({})).discoveredMachines).toEqual([]);
  await go('#/hosts/h1');
});

test('the last boot over the network is shown step by step', async (context) => {
  if (problem !== undefined) return context.skip(problem);
  await page.getByRole('link', { name: 'Boots' }).click();
  await page.getByRole('heading', { name: 'the runner came' }).first().waitFor();
  const steps = page.getByRole('region', { name: 'Steps of the boot', exact: false }).first();
  for (const step of ['the boot script', 'the kernel', 'the ramdisk', 'the runner']) {
    await steps.getByText(step, { exact: true }).waitFor();
  }
  expect(await steps.locator('svg rect.fill').count()).toBeGreaterThan(3);
});

test('disks are shown as the host and its BMC list them, side by side', async (context) => {
  if (problem !== undefined) return context.skip(problem);
  await page.getByRole('link', { name: 'Inventory' }).click();
  const parts = page.getByRole('region', { name: 'Parts as host and BMC list them' });
  const disk = parts.getByRole('row').filter({ hasText: 'h1-NVME' });
  await disk.filter({ hasText: 'h1-nvme' }).getByText('same', { exact: true }).waitFor();
});

test('a certificate is opened, and its signature is verified in the browser', async (context) => {
  if (problem !== undefined) return context.skip(problem);
  await page.getByRole('link', { name: 'Disks and certificates' }).click();
  await page.locator('td a', { hasText: 'h1-NVME' }).first().click();
  await page.getByRole('heading', { name: 'Certificate of erasure' }).waitFor();
  await page.getByText('signature verified by this browser').waitFor();
  await page.getByText('Erased: ', { exact: false }).waitFor();
  expect(await violationsOf(page)).toEqual([]);
  const pdf = await page.pdf({ format: 'A4' });
  expect(pdf.subarray(0, 5).toString()).toBe('%PDF-');
});

test('a rollout is followed host by host, and its history is drawn', async (context) => {
  if (problem !== undefined) return context.skip(problem);
  const image = await pushImage('1.0');
  await command('fleet', 'registry', 'set', site.registry.name, '--plain-http');
  for (const host of ['h1', 'h2']) {
    await command('host', 'update', host, '--label', 'role=web', '--root-disk', 'model=Flash 16');
  }
  await go('#/pools');
  await page.getByText('There is no pool.', { exact: false }).waitFor();
  await command('pool', 'create', 'web', '--label', 'role=web', '--image', image);
  await page.getByRole('link', { name: 'web', exact: true }).click();
  await page.locator('.cell.busy').first().waitFor();
  await page.locator('.cell.good').nth(1).waitFor();
  await page.locator('.host-line').getByText('up to date').waitFor();
  await page.locator('.history').getByText('1.0').waitFor();
  expect(await page.locator('.cell.busy').count()).toBe(0);
});

test('a run that waits for a person goes on, and goes on without its step', async (context) => {
  if (problem !== undefined) return context.skip(problem);
  const file = join(site.folder, 'look.yaml');
  const steps = ['{ name: look, hold: see the lamp }', '{ name: again, hold: see it again }'];
  writeFileSync(file, `steps:\n${steps.map((step) => `  - ${step}\n`).join('')}`);
  await command('template', 'create', 'look', file);
  await go('#/hosts/h1');
  await command('workflow', 'create', 'h1', 'look');
  const answer = async (title: string, reason: string) => {
    await page.locator('.menu > summary').click();
    await page.getByRole('button', { name: `${title} …` }).click();
    const dialog = page.getByRole('dialog');
    const act = dialog.getByRole('button', { name: title, exact: true });
    expect(await act.isDisabled()).toBe(true);
    await dialog.getByLabel('Reason').fill(reason);
    expect(await violationsOf(page)).toEqual([]);
    await act.click();
    await dialog.waitFor({ state: 'detached' });
  };
  await page.getByText('see the lamp', { exact: false }).first().waitFor();
  await answer('Go on', 'it is green');
  await page.getByText('see it again', { exact: false }).first().waitFor();
  await answer('Skip the step', 'seen once');
  await page.locator('.run').getByText('succeeded').first().waitFor();
  const { status } = await site.clients.hosts.getHost({ name: 'hosts/h1' });
  const skips = status?.run?.steps.map(({ title, skip }) => [title, skip?.reason]);
  expect(skips).toEqual([
    ['look', undefined],
    ['again', 'seen once'],
  ]);
});

test('a sign-in that the identity provider led back from in vain says why', async (context) => {
  if (problem !== undefined) return context.skip(problem);
  const other = await openPage(browser);
  other.page.setDefaultTimeout(patience.timeout);
  await other.page.goto(`https://${site.operatorsAddress}/sign-in?error=NO_ROLE`);
  const told = other.page.getByRole('alert');
  await told.getByText('none of your groups has a role here', { exact: false }).waitFor();
  expect(await told.locator('.advice').textContent()).toContain('oidc.roles');
  expect(await violationsOf(other.page)).toEqual([]);
  await other.context.close();
});

test('the server finds hosts by what the filter makes of words and choices', async (context) => {
  if (problem !== undefined) return context.skip(problem);
  const { spec } = await site.clients.hosts.getHost({ name: 'hosts/h2' });
  await go('#/hosts');
  const filter = page.getByRole('searchbox');
  for (const text of ['h2', spec?.bootMacs[0] ?? '', 'labels.role = web AND name = *2']) {
    await filter.fill(text);
    await page.getByText('1 host', { exact: true }).waitFor();
    await page.locator('.grid-spacer').getByText('h2', { exact: true }).waitFor();
  }
  await filter.fill('labels.role = (');
  await page.getByRole('alert').getByText('at character', { exact: false }).waitFor();
  await filter.fill('');
  for (const [label, value] of [
    ['State', 'provisioned'],
    ['Fault', ''],
    ['Power', 'true'],
  ]) {
    await page
      .locator('label', { hasText: label ?? '' })
      .locator('select')
      .selectOption(value ?? '');
    await page.getByText('2 hosts', { exact: true }).waitFor();
  }
  expect(page.url()).toContain('state=provisioned&fault=none&power=true');
});

test('text that is typed while the list applies earlier text is not lost', async (context) => {
  if (problem !== undefined) return context.skip(problem);
  await go('#/hosts');
  const filter = page.getByRole('searchbox');
  // It is typed between the change of the address and what follows on that.
  await page.evaluate(`addEventListener('hashchange', () => {
    const field = document.querySelector('input[type=search]');
    field.value = 'h2';
    field.dispatchEvent(new Event('input', { bubbles: true }));
  }, { once: true })`);
  await filter.fill('h1');
  await page.waitForURL(/q=h2/);
  expect(await filter.inputValue()).toBe('h2');
});

test('a viewer is offered nothing that changes', async (context) => {
  if (problem !== undefined) return context.skip(problem);
  const expireTime = timestampFromMs(Date.now() + 3_600_000);
  const token = { role: Role.VIEWER, expireTime };
  const made = await site.clients.access.createToken({ tokenId: 'looks', token });
  const other = await openPage(browser);
  other.page.setDefaultTimeout(patience.timeout);
  await other.page.goto(`https://${site.operatorsAddress}/#/hosts/h1`);
  await other.page.getByLabel('Token').fill(made.secret);
  await other.page.getByRole('button', { name: 'Sign in' }).click();
  await other.page.getByRole('heading', { name: 'h1' }).waitFor();
  await other.page.getByText('token:looks').waitFor();
  for (const path of ['hosts/h1', 'pools/web', 'brakes']) {
    await other.page.evaluate(`location.hash = '#/${path}'`);
    await other.page.locator('.panel').first().waitFor();
    const buttons = await other.page.locator('main button').allTextContents();
    expect(buttons, path).toEqual([]);
  }
  await other.context.close();
});

test('no page has a violation of WCAG 2.2 AA, light or dark, wide or narrow', async (context) => {
  if (problem !== undefined) return context.skip(problem);
  const found: string[] = [];
  const pictures = mkdtempSync(join(realpathSync(tmpdir()), 'rackwright-pictures-'));
  const said = `pictures of all pages: ${pictures}`;
  for (const [colorScheme, width] of looks) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 844 });
    for (const path of [...pages, '', 'hosts', ...ofHost, 'pools/web', 'racks/r1', 'racks/none']) {
      await go(`#/${path}`);
      await page.locator('h1').waitFor();
      await page.locator('main [role=status].nothing').first().waitFor({ state: 'detached' });
      const name = `${path.replaceAll(/\W/g, '-') || 'fleet'}-${colorScheme}-${width}.png`;
      const picture = join(pictures, name);
      await page.screenshot({ path: picture, fullPage: true });
      for (const each of await violationsOf(page)) found.push(`${picture}: ${each}`);
      const over = await page.evaluate<number>(
        'document.documentElement.scrollWidth - document.documentElement.clientWidth',
      );
      if (over > 0) found.push(`${picture}: ${over} px too wide`);
    }
  }
  await go('#/hosts/h1');
  await page.locator('.menu > summary').click();
  const menu = await page.locator('.menu > ul').boundingBox();
  expect(menu?.x, said).toBeGreaterThanOrEqual(0);
  expect((menu?.x ?? 0) + (menu?.width ?? 0), said).toBeLessThanOrEqual(390);
  expect(found, said).toEqual([]);
  // They stay where a test fails.
  rmSync(pictures, { recursive: true });
});

test('a control plane that is silent is noticed, and all recovers by itself', async (context) => {
  if (problem !== undefined) return context.skip(problem);
  await page.setViewportSize({ width: 1280, height: 900 });
  await go('#/hosts/h1');
  await page.locator('.light.live').waitFor();
  const pid = site.controlPlane.pid ?? 0;
  process.kill(pid, 'SIGSTOP');
  try {
    await page.getByRole('alert').getByText('does not answer', { exact: false }).waitFor();
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  await page.locator('.light.live').waitFor();
  await page.getByRole('alert').waitFor({ state: 'detached' });
  await command('host', 'hold', 'h1', '--scope', 'power', '--reason', 'after a silence');
  await page.getByText('after a silence', { exact: false }).first().waitFor();
});

test('the page says that the control plane is away, and notices its return', async (context) => {
  if (problem !== undefined) return context.skip(problem);
  await page.setViewportSize({ width: 1280, height: 900 });
  await go('#/hosts/h1');
  await page.locator('.light.live').waitFor();
  await page.getByText('provisioned', { exact: true }).first().waitFor();
  await site.controlPlane.kill();
  const banner = page.getByRole('alert');
  await banner.getByText('The control plane does not answer.').waitFor();
  await banner.getByText(/What you see is stale since \d\d:\d\d:\d\d UTC/).waitFor();
  // What was there is there still.
  expect(await page.getByText('provisioned', { exact: true }).count()).toBeGreaterThan(0);
  expect(await violationsOf(page)).toEqual([]);
  site.controlPlane.start();
  // Sessions are in the store: who was signed in still is.
  await page.locator('.light.live').waitFor();
  await page.getByRole('heading', { name: 'h1' }).waitFor();
  await command('host', 'hold', 'h1', '--scope', 'work', '--reason', 'seen live again');
  await page.getByText('seen live again', { exact: false }).first().waitFor();
});

test('the console asked no other server, and logged no error', (context) => {
  if (problem !== undefined) return context.skip(problem);
  const own = [`https://${site.operatorsAddress}/`, 'blob:', 'data:'];
  expect(opened.asked.filter((url) => !own.some((each) => url.startsWith(each)))).toEqual([]);
  const isExpected = (text: string) => /ERR_CONNECTION_REFUSED|401|status of 40/.test(text);
  expect(opened.complaints.filter((text) => !isExpected(text))).toEqual([]);
});
