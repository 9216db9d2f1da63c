/** The loops of workflows and batches and their sweeper, as one part of the control plane. */
import { Batches } from './batches.ts';
import { Workflows, type WorkflowsDependencies } from './loop.ts';
import { type SweeperDependencies, WorkflowSweeper } from './sweep.ts';

export interface WorkflowParts {
  readonly workflows: Workflows;
  readonly batches: Batches;
  start(): Promise<void>;
  stop(): void;
}

/** Nothing moves before `start`. */
export function createWorkflowParts(
  deps: WorkflowsDependencies & Pick<SweeperDependencies, 'sweep'>,
): WorkflowParts {
  const workflows = new Workflows(deps);
  const batches = new Batches({ ...deps, workflows });
  const sweeper = new WorkflowSweeper({ ...deps, workflows });
  return {
    workflows,
    batches,
    start: async () => {
      await workflows.start();
      await batches.start();
      await sweeper.start();
    },
    stop: () => {
      for (const part of [sweeper, batches, workflows]) part.stop();
    },
  };
}
