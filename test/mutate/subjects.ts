/** The folders whose tests are put to the test, and how much of what is broken they must notice. */

export interface Subject {
  /** Folders whose code is broken, from the repository's root. */
  readonly code: readonly string[];
  /** Folders whose tests run; each file that needs no program and no other machine. */
  readonly tests: readonly string[];
  /** Least share of the mutants that the tests must notice, per cent. */
  readonly floorPercent: number;
}

/** Code on which data or evidence depends must reach this share; all else the lower one. */
const high = 80;
const low = 70;

const of = (folder: string, floorPercent: number, tests = [folder]): Subject => ({
  code: [folder],
  tests,
  floorPercent,
});

export const subjects: Readonly<Record<string, Subject>> = {
  erasure: of('packages/erasure/src', high),
  erase: of('packages/runner/src/erase', high),
  provision: of('packages/runner/src/provision', high),
  journal: of('agent/src/journal', high),
  records: of('controlplane/src/records', high),
  life: of('controlplane/src/host/life', low, ['controlplane/src/host']),
  events: of('controlplane/src/host/events', low, ['controlplane/src/host']),
  pool: of('controlplane/src/pool', low),
  identity: of('controlplane/src/identity', low),
};
