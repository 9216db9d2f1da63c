/** The alert rules and the dashboard that ship, judged by Debian's promtool. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, type TestContext, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { peer, runPeer } from '../peer.ts';
import { type AlertScenario, alertScenarios, healthy } from './alert-scenarios.ts';
import { rulesFile } from './shipped.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-rules-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function promtool(context: TestContext, ...args: string[]): Promise<string> {
  const found = peer('promtool');
  if (found.kind === 'missing') return context.skip(found.reason);
  const { code, output } = await runPeer(found.path, args);
  expect(code, output).toBe(0);
  return output;
}

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly {
      readonly alert: string;
      readonly labels: { readonly severity: string };
      readonly annotations: { readonly summary: string; readonly action: string };
    }[];
  }[];
}

const rules = (parse(readFileSync(rulesFile, 'utf8')) as Rules).groups.flatMap(
  (group) => group.rules,
);

/** Of `promtool test rules`: how many alerts fire, by name. */
function testOf({ series, atMinutes }: AlertScenario, firing: readonly string[]): object {
  return {
    interval: '1m',
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    promql_expr_test: [
      {
        expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
        eval_time: `${atMinutes}m`,
        exp_samples: firing.map((alert) => ({ labels: `{alertname="${alert}"}`, value: 1 })),
      },
    ],
  };
}

test('promtool takes the rules; each has a severity, a summary and an action', async (context) => {
  expect(await promtool(context, 'check', 'rules', rulesFile)).toContain(`${rules.length} rules`);
  for (const { labels, annotations } of rules) {
    expect(['warning', 'critical']).toContain(labels.severity);
    expect(annotations.summary).not.toBe('');
    expect(annotations.action).not.toBe('');
  }
});

test('each alert fires once where its cause is, and none where all is well', async (context) => {
  expect(Object.keys(alertScenarios)).toEqual(rules.map(({ alert }) => alert));
  const tests = Object.entries(alertScenarios).map(([alert, scenario]) =>
    testOf(scenario, [alert]),
  );
  const file = join(folder, 'test.yaml');
  const all = [...tests, testOf(healthy, [])];
  writeFileSync(
    file,
    stringify({ rule_files: [rulesFile], evaluation_interval: '1m', tests: all }),
  );
  expect(await promtool(context, 'test', 'rules', file)).toContain('SUCCESS');
});
