/**
 * Steps that the agent runs itself, on the BMC: no runner, no boot.
 *
 * 1. Identity is read live first; a BMC that is not the expected one never gets a command.
 * 2. The intent is durable before the first command.
 * 3. A step that this agent did not name in its Hello is not run (R8).
 * 4. A step that destroys data may order it long after its begin: each order is permitted anew.
 */
import { create } from '@bufbuild/protobuf';
import type { OnUpdateProgress } from '@rackwright/bmc';
import { ArgumentType, agent, RerunClass, resetBmcStep } from '@rackwright/messages';
import type { FinalResult } from '@rackwright/results';
import type { OperationContext } from '../session/index.ts';
import { type BmcDrivers, failure, resultOfBmc } from './bmc-access.ts';
import { openExpectedBmc } from './expected-bmc.ts';
import { firmwareSteps } from './firmware-steps.ts';
import { permitEachOrder } from './order-permit.ts';
import type { OutOfBandStep } from './out-of-band-step.ts';
import { raidSteps } from './raid-steps.ts';

/** May be repeated and aborted at any time; runs only where a request names it. */
const harmless = {
  priority: 0,
  rerunClass: RerunClass.SAFE,
  destructive: false,
  abortable: true,
};

const clearEventLog: OutOfBandStep = {
  description: create(agent.StepDescriptionSchema, {
    name: 'management.clear_event_log',
    ...harmless,
    description: 'Empties the event log that the BMC keeps of the machine, and reads it back.',
  }),
  run: (driver, _, signal) => driver.clearEventLog(signal),
};

const lampStates = ['lit', 'off'];

const setIndicator: OutOfBandStep = {
  description: create(agent.StepDescriptionSchema, {
    name: 'management.set_indicator',
    ...harmless,
    description:
      'Switches the lamp by which people find the machine. Redfish reads it back; IPMI cannot.',
    typedArguments: [
      {
        name: 'state',
        type: ArgumentType.CHOICE,
        required: true,
        description: 'What the lamp is to be.',
        values: lampStates,
      },
    ],
  }),
  problem: ({ state = '' }) =>
    lampStates.includes(state) ? undefined : `state must be ${lampStates.join(' or ')}`,
  run: (driver, { state }, signal) => driver.setIndicator(state === 'lit', signal),
};

const resetBmc: OutOfBandStep = {
  description: create(agent.StepDescriptionSchema, {
    name: resetBmcStep,
    ...harmless,
    description:
      'Restarts the BMC itself, not the machine, and waits until it was silent and answers again.',
  }),
  run: (driver, _, signal) => driver.resetBmc(signal),
};

/** All of them, as Hello lists them. */
export const outOfBandSteps: readonly OutOfBandStep[] = [
  clearEventLog,
  setIndicator,
  resetBmc,
  ...firmwareSteps,
  ...raidSteps,
];

export async function runOutOfBand(
  drivers: BmcDrivers,
  request: agent.RunStep,
  context: OperationContext,
): Promise<FinalResult> {
  const step = outOfBandSteps.find(({ description }) => description.name === request.step);
  if (step === undefined) {
    const known = outOfBandSteps.map(({ description }) => description.name).join(', ');
    return failure('unsupported', `this agent has no step ${request.step}; it has ${known}`);
  }
  const isCheck = request.mode === agent.StepMode.CHECK && step.canCheck === true;
  if (request.mode !== agent.StepMode.RUN && !isCheck) {
    return failure('unsupported', `${request.step} can be run again, and has nothing to check`);
  }
  const problem = step.problem?.(request.arguments);
  if (problem !== undefined) return failure('invalidArgument', `${request.step}: ${problem}`);
  const bmc = await openExpectedBmc(drivers, request, context);
  if (bmc.kind !== 'expected') return bmc;
  await context.begin();
  const onProgress: OnUpdateProgress = (percent, state) =>
    context.reportProgress({ step: request.step, percent, text: state });
  const beforeOrder = permitEachOrder(request, context);
  const hooks = { isCheck, onProgress, beforeOrder };
  const done = await step.run(bmc.driver, request.arguments, context.signal, hooks);
  return done.kind === 'ok' ? { kind: 'complete' } : resultOfBmc(done);
}
