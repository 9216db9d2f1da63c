/**
 * The command as people see it: in a pseudo-terminal (`script` of bsdutils) of 80 and 200 columns,
 * over a rack whose agent and BMC really answer.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { HostGoal, HostState, RunPhase } from '@rackwright/messages';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { programOf } from './programs.ts';
import { Rack } from './rack.ts';

const timeout = 600_000;
const machineOf = (n: number) => ({
  name: `h${n}`,
  bmcAddress: `127.0.0.${60 + n}`,
  mac: `52:54:00:00:02:0${n}`,
  uuid: `0${n}02030405060708090a0b0c0d0e0f20`,
  serial: `SN-${n}`,
  disks: [],
});
const hasScript = spawnSync('script', ['--version']).status === 0;

let rack: Rack;
/** A folder with `rackwright`, for shells that complete it. */
let bin: string;

beforeAll(async () => {
  if (!hasScript) return;
  rack = await Rack.start({ machines: [machineOf(1), machineOf(2)], goal: HostGoal.MANAGEABLE });
  bin = mkdtempSync(join(tmpdir(), 'rackwright-terminal-'));
  const program = programOf('rackwright');
  writeFileSync(
    join(bin, 'rackwright'),
    `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`,
    {
      mode: 0o755,
    },
  );
  for (const name of ['h1', 'h2']) {
    await rack.untilHost(
      name,
      'known',
      ({ status }) =>
        status?.state === HostState.MANAGEABLE && status.run?.phase === RunPhase.ENDED,
    );
  }
}, timeout);

afterAll(async () => {
  await rack?.stop();
  if (bin !== undefined) rmSync(bin, { recursive: true });
});

/** In place of keys: the terminal goes away, as no shell is left in the same way. */
const hangUp = '';
const againMs = 5_000;

interface Shown {
  readonly code: number | null;
  readonly screen: string;
}

/**
 * Types `keys` one after the other, each once the screen shows what stands before it. `again` is
 * typed now and then until it does: a completion that takes too long is given up.
 */
async function inTerminal(
  columns: number,
  line: string,
  keys: readonly (readonly [shows: RegExp, typed: string, again?: string])[] = [],
): Promise<Shown> {
  const command = `stty cols ${columns} rows 24; ${line}`;
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    env: {
      ...process.env,
      ...rack.commandEnvironment,
      TERM: 'xterm',
      HOME: bin,
      PATH: `${bin}:${process.env['PATH']}`,
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let screen = '';
  child.stdout.on('data', (bytes: Buffer) => {
    screen += bytes.toString();
  });
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  for (const [shows, typed, again] of keys) {
    const endMs = Date.now() + 240_000;
    let nextMs = Date.now() + againMs;
    while (!shows.test(screen)) {
      if (Date.now() > endMs) {
        child.kill('SIGKILL');
        throw new Error(`${line}: ${shows} is not shown, but:\n${screen}`);
      }
      if (again !== undefined && Date.now() > nextMs) {
        nextMs = Date.now() + againMs;
        child.stdin.write(again);
      }
      await pause(50);
    }
    if (typed === hangUp) child.kill('SIGKILL');
    else child.stdin.write(typed);
  }
  const code = await ended;
  child.stdin.destroy();
  return { code, screen };
}

/** What is drawn: without what moves the cursor. */
const linesOf = (screen: string) =>
  screen
    .split('\x1b[')
    .map((part, index) => (index === 0 ? part : part.replace(/^[?0-9;]*[A-Za-z]/, '')))
    .join('')
    .split(/[\r\n]+/);

const noScript = '`script` is missing: apt install bsdutils';

describe.each([80, 200])('in a terminal of %i columns', (columns) => {
  const fits = (screen: string) => {
    for (const line of linesOf(screen)) expect(line.length).toBeLessThanOrEqual(columns);
  };

  test('work is waited for with a line of its progress, which goes away', { timeout }, async ({
    skip,
  }) => {
    if (!hasScript) return skip(noScript);
    const { code, screen } = await inTerminal(columns, 'rackwright host verify h1 --wait');
    expect(code, screen).toBe(0);
    expect(screen).toMatch(/\r\x1b\[Khosts\/h1 {2}verify \d+/);
    expect(screen).toMatch(/state +manageable/);
    fits(screen.slice(0, screen.lastIndexOf('\r\x1b[K')));
  });

  test('many hosts are agreed to by their number, and each is reported', { timeout }, async ({
    skip,
  }) => {
    if (!hasScript) return skip(noScript);
    const line = 'rackwright host clean --rack r1 --wait --timeout 5m';
    const no = await inTerminal(columns, line, [[/Type 2 to go on:/, 'y\n']]);
    expect([no.code, no.screen]).toEqual([1, expect.stringContaining('nothing was asked')]);
    const verify = 'rackwright host verify --rack r1 --wait';
    const yes = await inTerminal(columns, verify, [[/Ask for verify of 2 hosts\?/, 'y\n']]);
    expect(yes.code, yes.screen).toBe(0);
    expect(yes.screen).toMatch(/verify of 2 hosts {2}\[-+\] {2}0%/);
    expect(yes.screen).toMatch(/2 over {2}\[#+\] {2}100%/);
    expect(yes.screen).toMatch(/hosts\/h2 +done/);
    fits(yes.screen.slice(yes.screen.indexOf('HOST')));
  });

  test('top draws the fleet until Ctrl-C', { timeout }, async ({ skip }) => {
    if (!hasScript) return skip(noScript);
    const { code, screen } = await inTerminal(columns, 'rackwright top', [[/FAULTS/, '\x03']]);
    expect(code, screen).toBe(130);
    expect(screen).toContain('2 hosts: 2 manageable');
    expect(screen.trimEnd().endsWith('\x1b[?1049l')).toBe(true);
    fits(screen);
  });

  test('a deletion is refused by the person, and by who claims the host', { timeout }, async ({
    skip,
  }) => {
    if (!hasScript) return skip(noScript);
    const line = 'rackwright host delete h1 --force';
    const no = await inTerminal(columns, line, [[/Remove hosts\/h1 by force\?/, 'n\n']]);
    expect([no.code, no.screen]).toEqual([1, expect.stringContaining('nothing was asked')]);
    await rack.clients.hosts.claimHost({ name: 'hosts/h1', reason: 'in use' });
    const claimed = await inTerminal(columns, line, [[/Remove hosts\/h1 by force\?/, 'y\n']]);
    await rack.clients.hosts.unclaimHost({ name: 'hosts/h1' });
    expect(claimed.code, claimed.screen).toBe(1);
    expect(claimed.screen).toContain('claim');
  });

  test('bash completes commands, flags and names of hosts', { timeout }, async ({ skip }) => {
    if (!hasScript) return skip(noScript);
    const rc = join(bin, 'bashrc');
    writeFileSync(rc, `PS1='> '; source <(rackwright completion bash)\n`);
    const { screen } = await inTerminal(columns, `bash --rcfile ${rc} -i`, [
      [/> /, 'rackwright host verify h\t\t'],
      [/h1 +h2/, '1 --wa\t'],
      [/h1 --wait /, '\x15exit\n'],
    ]);
    expect(screen).toMatch(/h1 +h2/);
  });
});

describe('in a terminal', () => {
  const columns = 80;

  test('Ctrl-C ends a wait and not the work', { timeout }, async ({ skip }) => {
    if (!hasScript) return skip(noScript);
    const line = 'rackwright host inspect h2 --wait';
    const { code, screen } = await inTerminal(columns, line, [[/inspect \d+/, '\x03']]);
    expect(code, screen).toBe(130);
    expect(screen).toContain('the work goes on: `rackwright host watch h2`');
    const { status } = await rack.clients.hosts.getHost({ name: 'hosts/h2' });
    expect(status?.run?.phase).not.toBe(RunPhase.ENDED);
    await rack.clients.hosts.abortRun({ name: 'hosts/h2', reason: 'seen enough' });
    await rack.untilHost(
      'h2',
      'at rest',
      ({ status: now }) => now?.run?.phase === RunPhase.ENDED,
      60_000,
    );
  });

  test('a console draws on the terminal, says nothing to it, and ~. ends it', { timeout }, async ({
    skip,
  }) => {
    if (!hasScript) return skip(noScript);
    const folder = rack.machines[0]?.folder ?? '';
    // Bold; a question to the terminal, whose answer would be typed; a title.
    const said = '\\033[1mGNU GRUB\\033[0m\n\\033[6nh1\\033]0;title\\007 login:\n';
    writeFileSync(join(folder, 'console'), said);
    const line = 'rackwright host console h1';
    const { code, screen } = await inTerminal(columns, line, [[/h1 login:/, '\r~.']]);
    expect(code, screen).toBe(0);
    expect(screen).toContain('\x1b[1mGNU GRUB\x1b[0m');
    expect(screen).not.toMatch(/\x1b\[6n|title/);
    // Whoever looks again sees what was shown before, also when there is no console any more.
    rmSync(join(folder, 'console'));
    const again = await inTerminal(columns, line);
    expect(again.screen).toContain('h1 login:');
    expect([again.code, again.screen]).toEqual([1, expect.stringMatching(/serial over LAN/)]);
  });
});

/** In either order, and below what was typed. */
const bothNames = /h1[\s\S]*h2|h2[\s\S]*h1/;
const completing = [
  ['zsh', '-f', 'autoload -Uz compinit; compinit -u; source <(rackwright completion zsh)'],
  ['fish', '--no-config', 'rackwright completion fish | source'],
] as const;

describe.each(completing)('%s', (shell, quiet, source) => {
  test('completes names of hosts', { timeout }, async ({ skip }) => {
    if (!hasScript) return skip(noScript);
    const isThere = spawnSync(shell, ['--version']).status === 0;
    if (!isThere) return skip(`${shell} is missing: apt install ${shell}`);
    const { screen } = await inTerminal(80, `${shell} ${quiet} -i`, [
      [/[%>#$] /, `${source}; echo rea''dy\n`],
      [/ready/, 'rackwright host verify h\t'],
      [bothNames, hangUp, '\t'],
    ]);
    expect(screen).toMatch(bothNames);
  });
});

describe.each([
  [80, 'h2'],
  [200, 'h1'],
] as const)('in a terminal of %i columns', (columns, host) => {
  test('a removal by force says what it may have left', { timeout }, async ({ skip }) => {
    if (!hasScript) return skip(noScript);
    const line = `rackwright host delete ${host} --force --wait`;
    const asked = [[new RegExp(`Remove hosts/${host} by force`), 'y\n']] as const;
    const { code, screen } = await inTerminal(columns, line, asked);
    expect(code, screen).toBe(0);
    expect(screen).toContain('rackwright abandoned get');
  });
});
