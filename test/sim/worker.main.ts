/** A process of `workers.ts`: takes batches of seeds by message, answers what they came to. */
import { addFigures, type Figures } from './figures.ts';
import type { Batch, BatchEnd, Failure } from './workers.ts';
import { runWorld } from './world.ts';

process.on('message', (message) => {
  void runBatch(message as Batch).then((end) => process.send?.(end));
});

async function runBatch({ first, seeds, ...options }: Batch): Promise<BatchEnd> {
  const figures: Figures = new Map();
  const failures: Failure[] = [];
  const sum = { seeds: 0, events: 0, crashes: 0, simulatedMs: 0 };
  for (let seed = first; seed < first + seeds; seed++) {
    const result = await runWorld({ ...options, seed });
    sum.seeds += 1;
    sum.events += result.events;
    sum.crashes += result.crashes;
    sum.simulatedMs += result.simulatedMs;
    addFigures(figures, result.figures);
    const [violation] = result.violations;
    if (violation !== undefined) failures.push({ seed, ...violation });
  }
  return { ...sum, figures: [...figures], failures };
}
