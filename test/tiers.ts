/**
 * The tiers of tests as vitest projects: which files each takes. Every test file belongs to
 * exactly one tier; `npm run check` runs unit and tidy, the inner loop of whoever changes code.
 *
 * There are few of them: a worker that goes from one to another loads everything anew.
 */
import { matchesGlob } from 'node:path';

/** Patterns from the repository's root. */
export interface Tier {
  readonly name: string;
  readonly include: readonly string[];
  readonly exclude: readonly string[];
  /**
   * Tiers of one number run together. Those of 2 start programs and mostly wait for them: they come
   * after the rest, undisturbed, and more at once than there are processors.
   */
  readonly order: 1 | 2;
  /** Module whose `setup` runs once before the tier. */
  readonly setup?: string;
}

const slowOrPeer = '**/*.{peer,slow}.test.ts';
const workspaces = '{packages/*,agent,controlplane,test}';
/** Code that is there to touch the machine: its tests open files and sockets and start programs. */
const worldly = [
  'packages/platform/src/node/**/*.test.ts',
  'packages/runner/src/**/*.test.ts',
  'packages/sim/src/{firmware,loopback}/**/*.test.ts',
  'packages/store/src/{sqlite,conformance}/**/*.test.ts',
];

export const tiers: readonly Tier[] = [
  {
    name: 'unit',
    include: ['{packages/*,agent,controlplane}/**/*.test.ts', 'test/{,mutate/,bench/*/}*.test.ts'],
    exclude: [slowOrPeer, ...worldly, 'test/tidy*.test.ts'],
    order: 1,
  },
  {
    name: 'tidy',
    include: ['test/tidy*.test.ts', 'test/tidy/**/*.test.ts'],
    exclude: [],
    order: 1,
  },
  {
    name: 'sim',
    include: ['test/sim/**/*.test.ts'],
    exclude: [slowOrPeer],
    order: 1,
  },
  {
    name: 'system',
    include: [
      `${workspaces}/**/*.{peer,slow}.test.ts`,
      'test/{attacks,scenarios,lab,e2e,captures,packages}/**/*.test.ts',
    ],
    exclude: [],
    order: 2,
    setup: 'test/e2e/warm-up.ts',
  },
  { name: 'world', include: worldly, exclude: [slowOrPeer], order: 2 },
];

/** Files at once of a tier, on so many processors. Even of the first tests some only wait. */
export function workersOf({ order }: Tier, processors: number): number {
  return order === 2 ? 4 * processors : processors + 1;
}

/**
 * Files that take the longest, the worst first: what begins last decides when all have ended. The
 * rest goes by size, as vitest has it. The list need not be kept true: where it errs, it costs time
 * alone.
 */
export const longest: readonly string[] = [
  'packages/store/src/nats/store.peer.test.ts',
  'test/e2e/nats.test.ts',
  'test/e2e/demo.test.ts',
  'test/e2e/identity.test.ts',
  'test/e2e/power-sync.test.ts',
  'test/e2e/crossed.test.ts',
  'test/e2e/hand-off.test.ts',
  'test/peers-tests/console/console.peer.test.ts',
  'test/peers-tests/redfish/external.peer.test.ts',
  'test/e2e/secrets.test.ts',
  'test/peers-tests/boot/dhcp.peer.test.ts',
  'test/e2e/restart.test.ts',
  'test/e2e/kill.test.ts',
  'test/e2e/rollout.test.ts',
  'controlplane/src/services/cost.test.ts',
  'test/e2e/shutdown.test.ts',
  'test/e2e/agent-away.test.ts',
  'test/e2e/unseen.test.ts',
  'test/e2e/forced-removal.test.ts',
  'test/peers-tests/bmc/ipmi.peer.test.ts',
  'test/peers-tests/metrics/scrape.peer.test.ts',
  'test/e2e/kill-proof.test.ts',
  'test/e2e/restore-killed.test.ts',
  'test/how-to/how-to.slow.test.ts',
  'test/sim/sim.test.ts',
  'test/e2e/backup.test.ts',
  'test/stopped-run.peer.test.ts',
  'test/e2e/brakes.test.ts',
  'test/scenarios/replicas.test.ts',
  'packages/runner/src/provision/provision.peer.test.ts',
  'test/e2e/terminal.test.ts',
  'agent/src/redfish.slow.test.ts',
  'test/e2e/requests.test.ts',
  'test/e2e/lifecycle.test.ts',
  'test/e2e/restored-store.test.ts',
  'test/e2e/discovery.test.ts',
  'test/peers-tests/redfish/clients.peer.test.ts',
  'test/e2e/replicas.test.ts',
  'test/e2e/cli.test.ts',
  'test/e2e/clean-list.test.ts',
  'packages/store/src/conformance/suite.test.ts',
  'packages/bmc/src/redfish/management.slow.test.ts',
  'test/e2e/hostile-agent-shapes.test.ts',
  'test/sim/workflows/thousand.slow.test.ts',
  'test/peers-tests/console/large-fleet.peer.test.ts',
  'agent/src/boot/tftp-clients.test.ts',
  'test/e2e/disks.test.ts',
  'test/peers-tests/oci/command.peer.test.ts',
  'test/lab/lab.test.ts',
  'controlplane/src/fleet-view/leader.peer.test.ts',
  'packages/store/src/sqlite/power-cut.peer.test.ts',
  'test/e2e/identity-box.test.ts',
  'test/peers-tests/erase/held.peer.test.ts',
  'test/e2e/life.test.ts',
  'test/e2e/floods.test.ts',
  'test/e2e/hostile-agent.test.ts',
];

/** The names of the tiers that take a test file: one, or its tests run never or twice. */
export function tiersOf(path: string): string[] {
  const takes = ({ include, exclude }: Tier): boolean =>
    include.some((glob) => matchesGlob(path, glob)) &&
    !exclude.some((glob) => matchesGlob(path, glob));
  return tiers.filter(takes).map(({ name }) => name);
}
