/**
 * `--matrix`: every firmware with every giver of addresses, each from power-on to `available`, and
 * what Secure Boot refuses; at the end a table of how long the boots took.
 */
import { type BootWay, isSecure } from '../firmware.ts';
import type { Findings, Scenario } from '../site.ts';
import { bootTimes } from '../stages.ts';
import { checkScenario } from './check.ts';
import { unsignedScenario } from './unsigned.ts';

type Row = readonly [title: string, times: ReadonlyMap<string, number>];

/** Of the boots that came to their end, in order. */
const rows: Row[] = [];

/** The scenarios by title. */
export function matrixScenarios(
  boots: readonly BootWay[],
  titleOf: (name: string, boot: BootWay) => string,
): ReadonlyMap<string, Scenario> {
  const scenarios = new Map(
    boots.map((boot) => {
      const title = titleOf('matrix', boot);
      return [title, timed(title, { ...checkScenario, boot })] as const;
    }),
  );
  if (boots.some(({ firmware }) => isSecure(firmware))) {
    scenarios.set('matrix: a loader that nobody has signed', unsignedScenario);
  }
  return scenarios;
}

/** Prints what the boots of this run took, each stage in seconds since the boot was ordered. */
export function printMatrix(findings: Findings): void {
  const stages = [...new Set(rows.flatMap(([, times]) => [...times.keys()]))];
  for (const [index, stage] of stages.entries()) findings.say(`${index + 1}: ${stage}`);
  const width = Math.max(...rows.map(([title]) => title.length), 0);
  findings.say(
    [''.padEnd(width), ...stages.map((_, index) => String(index + 1).padStart(8))].join(''),
  );
  for (const [title, times] of rows) {
    const cells = stages.map((stage) => secondsOf(times.get(stage)).padStart(8));
    findings.say([title.padEnd(width), ...cells].join(''));
  }
}

function timed(title: string, scenario: Scenario): Scenario {
  return {
    ...scenario,
    run: async (site) => {
      await scenario.run(site);
      const [machine] = site.lab.machines;
      if (machine !== undefined) rows.push([title, bootTimes(site, machine)]);
    },
  };
}

function secondsOf(ms: number | undefined): string {
  return ms === undefined ? '-' : `${(ms / 1000).toFixed(1)} s`;
}
