/**
 * The secrets of a packaged installation, looked for where none may be: in the journal, in the
 * files of both services, in `/etc` and `/run`, and in what processes show while they come and go.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ProcessWatch, SecretSearch } from '../e2e/secrets-search.ts';
import { BMC_PASSWORD } from '../lab/ipmi-sim.ts';
import { until } from '../lab/processes.ts';
import type { Site } from '../lab/site.ts';
import type { Container } from './container.ts';

/** Often enough for a call of ipmitool; each look reads the whole of /proc. */
const LOOK_EACH_MS = 100;
const LOOK_WAIT_MS = 60_000;
/** Folders, and which secret is at home in which file there. */
const PLACES: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  '/etc': { 'rackwright/secrets.key': ['key'] },
  '/run': { 'credentials/rackwright-controlplane.service/secrets-key': ['key'] },
  '/tmp': {},
  '/var': {
    'lib/rackwright/identity/admin.token': ['admin'],
    'lib/rackwright.before/identity/admin.token': ['admin'],
  },
};

/** What is looked for. */
export interface Secrets {
  readonly key: Uint8Array;
  readonly admin: string;
  /** The part of a join token that nobody may know. */
  readonly join: string;
}

/** Looks at processes from its making on, and at files when asked. */
export class Planted {
  readonly #search: SecretSearch;
  /** Looks where secrets are at home, to show that it can find them. */
  readonly #control: SecretSearch;
  readonly #watch: ProcessWatch;
  readonly #container: Container;

  constructor(container: Container, secrets: Secrets) {
    this.#container = container;
    this.#search = new SecretSearch({ ...secrets, bmc: BMC_PASSWORD });
    this.#control = new SecretSearch({ ...secrets });
    // What is entered into the container is started by ourselves.
    const roots = [container.pid, process.pid];
    this.#watch = new ProcessWatch(this.#search, () => roots, LOOK_EACH_MS);
  }

  stop(): void {
    this.#watch.stop();
  }

  /** Until a process whose arguments have these words has been looked at. */
  async hasSeen(text: string): Promise<void> {
    await until(`a look at ${text}`, LOOK_WAIT_MS, () =>
      [...this.#watch.seen].some((line) => line.includes(text)),
    );
  }

  /** Searches all of it, and says whether there was anything to see. */
  async check({ findings }: Site): Promise<void> {
    const container = this.#container;
    this.stop();
    const journal = await container.run(['journalctl', '--no-pager', '-o', 'export']);
    this.#search.text('the journal', journal);
    const speaks = (unit: string): boolean => journal.includes(`_SYSTEMD_UNIT=${unit}.service`);
    const hasBoth = speaks('rackwright-agent') && speaks('rackwright-controlplane');
    findings.check('the journal that is searched has both services', hasBoth);
    const places = Object.entries(PLACES).map(([place, allowed]) =>
      this.#searchFolder(place, allowed),
    );
    const counts = places.map(({ place, count }) => `${place}: ${count}`);
    findings.say(`files searched in ${counts.join(', ')}`);
    const unread = places.flatMap((place) => place.unread);
    findings.check('every file could be read', unread.length === 0, unread.join('\n'));
    const blind = places.flatMap((place) => place.blind);
    findings.check('secrets are found where they are at home', blind.length === 0, blind.join());
    const seen = [...this.#watch.seen].join('\n');
    // Not systemd-notify, which is gone too soon to be seen each time.
    for (const program of ['ipmitool', 'agent.mjs join', 'backup --to']) {
      findings.check(`the arguments of ${program} were looked at`, seen.includes(program));
    }
    const found = this.#search.findings.map(
      ({ secret, encoding, where }) => `${secret}, ${encoding}, in ${where}`,
    );
    findings.check('no secret stands where none may be', found.length === 0, found.join('\n'));
  }

  #searchFolder(place: string, allowed: Readonly<Record<string, readonly string[]>>) {
    const folder = this.#container.path(place);
    const unread: string[] = [];
    let count = 0;
    for (const name of filesBelow(folder)) {
      const path = join(folder, name);
      try {
        this.#search.bytes(join(place, name), readFileSync(path), allowed[name] ?? []);
        count += 1;
      } catch (error) {
        if (existsSync(path)) unread.push(`${join(place, name)}: ${String(error)}`);
      }
    }
    const blind = Object.entries(allowed).flatMap(([name, secrets]) => {
      const path = join(folder, name);
      if (existsSync(path)) this.#control.bytes(path, readFileSync(path));
      const found = this.#control.findings.filter(({ where }) => where === path);
      return secrets.filter((each) => !found.some(({ secret }) => secret === each)).map(() => path);
    });
    return { place, count, unread, blind };
  }
}

/** Paths of files; no link is followed, for it would lead out of the container. */
function* filesBelow(folder: string, at = ''): Generator<string> {
  for (const entry of readdirSync(join(folder, at), { withFileTypes: true })) {
    const name = join(at, entry.name);
    if (entry.isDirectory()) yield* filesBelow(folder, name);
    else if (entry.isFile()) yield name;
  }
}
