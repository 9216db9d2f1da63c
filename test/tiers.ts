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
  'test/fuzz/harness.test.ts',
];

/** Those that wait the most come first: what computes fills the gaps at the end. */
export const tiers: readonly Tier[] = [
  {
    name: 'system',
    include: [
      `${workspaces}/**/*.{peer,slow}.test.ts`,
      'test/{attacks,scenarios,lab,e2e,packages}/**/*.test.ts',
    ],
    exclude: [],
    setup: 'test/e2e/warm-up.ts',
  },
  { name: 'world', include: worldly, exclude: [slowOrPeer] },
  {
    name: 'sim',
    include: ['test/sim/**/*.test.ts'],
    exclude: [slowOrPeer],
  },
  {
    name: 'unit',
    include: [
      '{packages/*,agent,controlplane}/**/*.test.ts',
      'test/{,fuzz/,mutate/,bench/*/}*.test.ts',
    ],
    exclude: [slowOrPeer, ...worldly, 'test/tidy*.test.ts'],
  },
  {
    name: 'tidy',
    include: ['test/tidy*.test.ts', 'test/tidy/**/*.test.ts'],
    exclude: [],
  },
];

/** After how many seconds `.ci/run` wants no further test to begin. Undefined: no limit. */
export function secondsOfRun(environment: NodeJS.ProcessEnv): number | undefined {
  const text = environment['RACKWRIGHT_TEST_SECONDS'];
  if (text === undefined) return undefined;
  const seconds = Number(text);
  if (text.trim() !== '' && seconds > 0) return seconds;
  throw new Error(`RACKWRIGHT_TEST_SECONDS has to be seconds above 0, not "${text}"`);
}

/**
 * Files at once, on so many processors. Of all tests most wait for programs that they start; those
 * of the tiers that a person names mostly compute. With a limit on its time a run has fewer at
 * once, so that on a slow machine each ends in good time.
 */
export function workersOf(
  processors: number,
  commandLine: readonly string[],
  seconds?: number,
): number {
  if (commandLine.includes('--project')) return processors + 1;
  return (seconds === undefined ? 4 : 3) * processors;
}

/**
 * Files that take the longest, the worst first: what begins last decides when all have ended. The
 * rest goes by size, as vitest has it. The list need not be kept true: where it errs, it costs time
 * alone.
 */
export const longest: readonly string[] = [
  'packages/store/src/nats/store.peer.test.ts',
  'test/e2e/nats.test.ts',
  'test/peers-tests/clients/examples.peer.test.ts',
  'test/e2e/hostile-agent-shapes.test.ts',
  'test/e2e/demo.test.ts',
  'test/e2e/rollout.test.ts',
  'test/e2e/replicas.test.ts',
  'controlplane/src/services/access-matrix.slow.test.ts',
  'test/e2e/identity.test.ts',
  'test/e2e/power-sync.test.ts',
  'test/e2e/restore-killed.test.ts',
  'test/e2e/forced-removal.test.ts',
  'test/e2e/cli.test.ts',
  'test/e2e/agent-away.test.ts',
  'test/stopped-run.peer.test.ts',
  'test/e2e/restart.test.ts',
  'test/peers-tests/console/console.peer.test.ts',
  'test/sim/workflows/thousand.slow.test.ts',
  'test/e2e/crossed.test.ts',
  'test/e2e/by-hand.test.ts',
  'test/how-to/how-to.slow.test.ts',
  'test/e2e/kill.test.ts',
  'test/e2e/kill-proof.test.ts',
  'test/peers-tests/boot/dhcp.peer.test.ts',
  'test/e2e/hand-off.test.ts',
  'test/e2e/backup.test.ts',
  'test/e2e/hostile-agent.test.ts',
  'test/e2e/secrets.test.ts',
  'test/peers-tests/boot/tftp.peer.test.ts',
  'test/e2e/shutdown.test.ts',
  'test/peers-tests/redfish/clients.peer.test.ts',
  'test/peers-tests/redfish/external.peer.test.ts',
  'packages/disk-image/src/qcow2/qcow2.peer.test.ts',
  'test/scenarios/replicas.test.ts',
  'test/e2e/floods.test.ts',
  'controlplane/src/services/cost.test.ts',
  'test/e2e/identity-box.test.ts',
  'test/e2e/brakes.test.ts',
  'test/e2e/clean-list.test.ts',
  'test/peers-tests/bmc/ipmi.peer.test.ts',
  'test/e2e/requests.test.ts',
  'test/attacks/cloned-agent.test.ts',
  'test/e2e/discovery.test.ts',
  'packages/store/src/sqlite/power-cut.peer.test.ts',
  'test/e2e/login.test.ts',
  'test/e2e/disks.test.ts',
  'test/e2e/own-clean-step.test.ts',
  'test/peers-tests/metrics/scrape.peer.test.ts',
  'test/lab/lab.test.ts',
  'packages/store/src/sqlite/kill.slow.test.ts',
  'test/e2e/life.test.ts',
  'test/e2e/lifecycle.test.ts',
  'test/e2e/restored-store.test.ts',
  'agent/src/boot/flood.slow.test.ts',
  'test/e2e/unseen.test.ts',
  'test/e2e/data-returned.test.ts',
  'packages/runner/src/liars/liars.test.ts',
  'test/peers-tests/oci/command.peer.test.ts',
  'packages/store/src/sqlite/store.test.ts',
  'test/e2e/terminal.test.ts',
  'test/peers-tests/erase/held.peer.test.ts',
  'test/e2e/kill-hunt.test.ts',
  'test/sim/seeds.test.ts',
  'test/sim/regressions.test.ts',
  'test/sim/sim.test.ts',
  'test/peers-tests/metrics/rules.peer.test.ts',
  'packages/store/src/conformance/suite.test.ts',
  'packages/bmc/src/redfish/firmware-update.slow.test.ts',
  'packages/bmc/src/redfish/volumes.slow.test.ts',
  'packages/bmc/src/redfish/network-adapters.slow.test.ts',
  'packages/runner/src/linux/programs.test.ts',
  'packages/runner/src/steps/script.test.ts',
  'test/peers-tests/python-client/python.peer.test.ts',
  'packages/runner/src/provision/provision.peer.test.ts',
  'packages/runner/src/provision/provision.test.ts',
  'test/attacks/listeners.test.ts',
  'packages/bmc/src/webhook/conformance.slow.test.ts',
  'packages/runner/src/main.slow.test.ts',
  'packages/runner/src/linux/machine-files.peer.test.ts',
  'packages/runner/src/runner.test.ts',
  'packages/bmc/src/redfish/management.slow.test.ts',
  'test/e2e/ports.test.ts',
  'test/peers-tests/console/large-fleet.peer.test.ts',
  'agent/src/redfish.slow.test.ts',
  'packages/runner/src/deploy/kill.slow.test.ts',
  'controlplane/src/fleet-view/leader.peer.test.ts',
];

/** The names of the tiers that take a test file: one, or its tests run never or twice. */
export function tiersOf(path: string): string[] {
  const takes = ({ include, exclude }: Tier): boolean =>
    include.some((glob) => matchesGlob(path, glob)) &&
    !exclude.some((glob) => matchesGlob(path, glob));
  return tiers.filter(takes).map(({ name }) => name);
}
