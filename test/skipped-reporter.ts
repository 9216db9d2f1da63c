/**
 * Says at the end of a run which tests did not run and why.
 *
 * K1 With CI=true a test that was skipped for a missing peer fails the run: its reason begins
 *    with `peerMissing`, and CI has run `npm run peers`.
 * K2 Where a peer is missing, the last line says what installs it, whatever the reasons say.
 */
import type { Reporter, TestModule } from 'vitest/node';

/** How the reason of `context.skip(reason)` begins when a Debian peer is not there. */
export const peerMissing = 'peer missing: ';

const peersAdvice = 'Peers that are missing: "npm run peers" installs them, as root, on Debian.';

/** One reason and how many tests gave it. */
export interface Skipped {
  readonly reason: string;
  readonly count: number;
}

/** Reasons with their counts, the most frequent first, then by name. */
export function tally(reasons: readonly string[]): Skipped[] {
  const counts = new Map<string, number>();
  for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts]
    .map(([reason, count]) => ({ reason, count }))
    .sort((a, b) => b.count - a.count || a.reason.localeCompare(b.reason));
}

function isForPeer({ reason }: Skipped): boolean {
  return reason.startsWith(peerMissing);
}

/** True when what was skipped must fail the run (K1). */
export function mustFail(skipped: readonly Skipped[], isCi: boolean): boolean {
  return isCi && skipped.some(isForPeer);
}

/** The closing lines. */
export function describeSkipped(skipped: readonly Skipped[]): string {
  const total = skipped.reduce((sum, { count }) => sum + count, 0);
  if (total === 0) return 'Skipped: none.';
  const lines = skipped.map(({ reason, count }) => `  ${count} × ${reason}`);
  const advice = skipped.some(isForPeer) ? [peersAdvice] : [];
  return [`Skipped: ${total}`, ...lines, ...advice].join('\n');
}

function reasonsOf(module: TestModule): string[] {
  return [...module.children.allTests('skipped')].map((test) => {
    const result = test.result();
    return (result.state === 'skipped' ? result.note : undefined) || 'no reason given';
  });
}

/** The reporter for vitest's configuration. */
export const skippedReporter: Reporter = {
  onTestRunEnd(modules) {
    const skipped = tally(modules.flatMap(reasonsOf));
    console.log(`\n${describeSkipped(skipped)}`);
    if (!mustFail(skipped, process.env['CI'] === 'true')) return;
    console.error('A Debian peer is missing, and CI must have them all: run "npm run peers".');
    process.exitCode = 1;
  },
};
