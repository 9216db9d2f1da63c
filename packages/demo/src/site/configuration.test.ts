/** What the demo's control plane is configured to do. */
import { expect, test } from 'vitest';
import { controlPlaneConfig } from './configuration.ts';

test('a machine that fails again and again is tried for as long as its failures allow', () => {
  const ports = { operators: 1, agents: 2, metrics: 3 };
  const { engine } = controlPlaneConfig('/demo', ports, undefined) as {
    readonly engine: { readonly goalRunsMax: number; readonly goalFailuresMax: number };
  };
  expect(engine.goalRunsMax).toBeGreaterThan(engine.goalFailuresMax);
});
