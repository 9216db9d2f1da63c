import { expect, test } from 'vitest';
import { digest, image, Rollout } from './rollout.fixture.ts';
import { shownPool } from './view.ts';

const count = (value: number) => ({ amount: { case: 'count' as const, value } });

const viewed = ({ record, hosts, nowMs }: Rollout) => ({ record, hosts, nowMs, ledger: [] });

test('who looks at a pool that went back sees the image that it leads its hosts to', () => {
  const rollout = { failureThreshold: count(1), rollback: true };
  const pool = new Rollout(3, { rollout }).push('A').push('B');
  pool.end(pool.out, 'failedWriting').finish();
  expect(shownPool(viewed(pool)).status).toMatchObject({
    ...{ rolledBackFrom: digest('B'), currentCount: 3 },
    target: { digest: digest('A'), image: image('A') },
  });
  expect(pool.record.pool?.status?.target?.digest).toBe(digest('B'));
  pool.push('C');
  expect(shownPool(viewed(pool)).status).toMatchObject({
    rolledBackFrom: '',
    target: { digest: digest('C') },
  });
});
